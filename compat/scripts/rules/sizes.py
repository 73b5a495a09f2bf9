"""Images were resized to a height and a width, `tf.image.resize_images(images, height, width)`.

TensorFlow 1.0 takes one argument, `size`, in the place of the two; its release notes do not say so.
"""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, Program
from compat.scripts.rules.findings import SERVED
from compat.scripts.rules.forms import LISTS, Form, Forms, calls, finder, is_named, is_old
from compat.scripts.rules.rule import Rule


def _is_old(call: ast.Call, _: bool) -> bool | None:
    args = call.args
    if len(args) < 3 or isinstance(args[1], LISTS):
        return False
    return True if literals.is_whole(args[1]) and not isinstance(args[2], ast.BinOp) else None


def _is_likely(call: ast.Call, _: bool) -> bool:
    height, width = call.args[1:3]
    is_size = literals.is_whole(height) or is_named(height, "height|^h$|size")
    return is_size and not is_named(width, "method")


FORMS: Forms = {
    "image.resize_images": (
        Form(
            "sizes",
            SERVED,
            "took height and width before 1.0, now one size; compat run accepts both",
            _is_old,
            _is_likely,
            keywords={"new_height": ""},
        ),
    )
}


def _rewrite(program: Program) -> Iterator[Edit]:
    for _, call, form in calls(FORMS, program):
        if is_old(program, call, form):
            start, _ = program.argument(call, call.args[1])
            _, end = program.argument(call, call.args[2])
            yield Edit(start, start, "[")
            yield Edit(end, end, "]")


RULE = Rule(
    "sizes",
    "1.0",
    "images were resized to height and width",
    "tf.image.resize_images(x, 24, 32)",
    "tf.image.resize_images(x, [24, 32])",
    optional=True,
    find=finder(FORMS),
    rewrite=_rewrite,
)
