"""`tf.concat` took the axis first.

TensorFlow 1.0: "`tf.concat` now takes arguments in reversed order and with different keywords. In
particular we now match NumPy order as `tf.concat(values, axis, name)`."
"""

from __future__ import annotations

import ast

from compat.scripts.reading import literals
from compat.scripts.rules.findings import SERVED
from compat.scripts.rules.forms import LISTS, Form, Forms, axis_first, finder, rewriter
from compat.scripts.rules.rule import Rule


def _is_old(call: ast.Call, _: bool) -> bool | None:
    first, second = [*call.args, None][:2]
    if isinstance(first, LISTS) or (second is not None and literals.is_whole(second)):
        return False
    if first is not None and literals.is_whole(first):
        return True
    return False if second is None else (True if isinstance(second, LISTS) else None)


FORMS: Forms = {
    "concat": (
        Form(
            "concat",
            SERVED,
            "took (concat_dim, values) before 1.0; compat run accepts both",
            _is_old,
            axis_first,
            ("axis", "values", "name"),
            {"concat_dim": "axis"},
        ),
    )
}
RULE = Rule(
    "concat",
    "1.0",
    "tf.concat took the axis first",
    "tf.concat(1, [x, y])",
    "tf.concat(axis=1, values=[x, y])",
    optional=True,
    find=finder(FORMS),
    rewrite=rewriter(FORMS),
)
