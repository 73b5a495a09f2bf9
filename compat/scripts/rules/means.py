"""`tf.losses.mean_squared_error` returned one mean.

In TensorFlow 2.0 `tf.losses` is Keras's, whose function returns one mean per row; `tf.compat.v1`
has the old one.
"""

from __future__ import annotations

from compat.scripts.rules.findings import CHANGES
from compat.scripts.rules.forms import Form, Forms, at_least, finder
from compat.scripts.rules.rule import Rule

FORMS: Forms = {
    "losses.mean_squared_error": (
        Form(
            "means",
            CHANGES,
            "returned one mean; in TensorFlow 2 this name is Keras's function, which returns one "
            "mean per row; compat run has the old function",
            at_least(2),
            is_kept=True,
        ),
    )
}
RULE = Rule(
    "means",
    "2.0",
    "tf.losses.mean_squared_error returned one mean",
    "tf.losses.mean_squared_error(x, y)",
    find=finder(FORMS),
)
