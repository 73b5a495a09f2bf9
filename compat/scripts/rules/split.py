"""`tf.split` and `tf.sparse_split` took the axis first.

TensorFlow 1.0: "`tf.split` now takes arguments in a reversed order and with different keywords. In
particular, we now match NumPy order as `tf.split(value, num_or_size_splits, axis)`."
"""

from __future__ import annotations

import ast

from compat.scripts.reading import literals
from compat.scripts.rules.findings import SERVED
from compat.scripts.rules.forms import Form, Forms, at_least, axis_first, finder, rewriter
from compat.scripts.rules.rule import Rule


def _is_old(call: ast.Call, _: bool) -> bool | None:
    if len(call.args) < 3:
        return any(keyword.arg == "value" for keyword in call.keywords)
    first, third = call.args[0], call.args[2]
    if literals.is_whole(first) or literals.is_whole(third):
        return literals.is_whole(first)
    return None


FORMS: Forms = {
    "sparse_split": (
        Form(
            "split",
            SERVED,
            "took (split_dim, num_split, sp_input) before 1.0; compat run accepts both",
            at_least(2),
            names=("axis", "num_split", "sp_input", "name"),
            keywords={"split_dim": "axis"},
        ),
    ),
    "split": (
        Form(
            "split",
            SERVED,
            "took (split_dim, num_split, value) before 1.0; compat run accepts both",
            _is_old,
            axis_first,
            ("axis", "num_or_size_splits", "value", "name"),
            {"split_dim": "axis", "num_split": "num_or_size_splits"},
        ),
    ),
}
RULE = Rule(
    "split",
    "1.0",
    "tf.split took the axis first",
    "tf.split(0, 2, x)",
    "tf.split(axis=0, num_or_size_splits=2, value=x)",
    optional=True,
    find=finder(FORMS),
    rewrite=rewriter(FORMS),
)
