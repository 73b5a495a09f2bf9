"""`tf.reverse` took a flag for each dimension.

TensorFlow 1.0: "tf.reverse() now takes indices of axes to be reversed. E.g. `tf.reverse(a, [True,
False, True])` must now be written as `tf.reverse(a, [0, 2])`."
"""

from __future__ import annotations

import ast

from compat.scripts.reading import literals
from compat.scripts.rules.findings import SERVED
from compat.scripts.rules.forms import Form, Forms, finder
from compat.scripts.rules.rule import Rule


def _has_flags(call: ast.Call, _: bool) -> bool:
    lists = [arg for arg in call.args[1:2] if isinstance(arg, (ast.List, ast.Tuple))]
    return any(isinstance(literals.value(flag), bool) for arg in lists for flag in arg.elts)


FORMS: Forms = {
    "reverse": (
        Form(
            "reverse",
            SERVED,
            "took a flag for each dimension before 1.0; compat run accepts both",
            _has_flags,
            keywords={"dims": ""},
        ),
    )
}
RULE = Rule(
    "reverse",
    "1.0",
    "tf.reverse took a flag for each dimension",
    "tf.reverse(x, [True, False])",
    find=finder(FORMS),
)
