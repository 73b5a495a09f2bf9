"""`tf.nn.dropout` took the probability to keep.

TensorFlow 2.0 takes `rate`, the probability to drop, as its second argument; `tf.compat.v1` has the
old function.
"""

from __future__ import annotations

from compat.scripts.rules.findings import CHANGES
from compat.scripts.rules.forms import Form, Forms, at_least, finder
from compat.scripts.rules.rule import Rule

FORMS: Forms = {
    "nn.dropout": (
        Form(
            "dropout",
            CHANGES,
            "took the probability to keep as its second argument; TensorFlow 2 takes the rate to "
            "drop; compat run keeps the old meaning",
            at_least(2),
            is_kept=True,
        ),
    )
}
RULE = Rule(
    "dropout",
    "2.0",
    "tf.nn.dropout took the probability to keep",
    "tf.nn.dropout(x, 0.75)",
    find=finder(FORMS),
)
