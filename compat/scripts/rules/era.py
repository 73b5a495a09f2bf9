"""Calls whose meaning depends on the age of the script alone are left, with a remark.

No name or type tells in which order a script gives the arguments of these two functions. Neither
order is in the release notes.
"""

from __future__ import annotations

import ast
from typing import Iterator

from compat.scripts.reading import literals
from compat.scripts.reading.program import Program, Remark
from compat.scripts.rules.findings import CHANGES
from compat.scripts.rules.forms import Form, Forms, at_least, calls, finder, is_found, positional
from compat.scripts.rules.rule import Rule


def _svd(call: ast.Call, _: bool) -> bool:
    args = positional(call)
    return len(args) > 2 and literals.value(args[1]) != literals.value(args[2])


FORMS: Forms = {
    "nn.weighted_cross_entropy_with_logits": (
        Form(
            "era",
            CHANGES,
            "took (logits, targets) in 0.x and (targets, logits) in 1.x; TensorFlow 2 takes "
            "(labels, logits); run it with compat run --era=0.x or --era=1.x",
            at_least(2),
            names=("targets", "logits", "pos_weight"),
        ),
    ),
    "svd": (
        Form(
            "era",
            CHANGES,
            "took compute_uv before full_matrices until 0.11; TensorFlow 2 takes them in the other "
            "order; run it with compat run --era=0.x or --era=1.x",
            _svd,
            names=("full_matrices", "compute_uv"),
        ),
    ),
}


def _rewrite(program: Program) -> Iterator[Remark]:
    for name, call, form in calls(FORMS, program):
        if is_found(form, call, program.is_0x):
            says, asked = form.says.split(";")[0], "=, ".join(form.names)
            yield Remark(call, f"tf.{name} {says}; write the names: {asked}=")


RULE = Rule(
    "era",
    "0.x, 1.0",
    "calls whose meaning depends on the age of the script alone are left, with a remark",
    "tf.svd(x, True, False)",
    "# compat 1: tf.svd took compute_uv before full_matrices until 0.11; write the names: "
    "full_matrices=, compute_uv=\n"
    "tf.svd(x, True, False)",
    find=finder(FORMS),
    rewrite=_rewrite,
)
