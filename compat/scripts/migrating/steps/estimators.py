"""Programs of `tf.estimator`: with `compat.estimator` either runtime trains them."""

from __future__ import annotations

import ast
from typing import Mapping

from compat.scripts.migrating import migration
from compat.scripts.migrating.steps.kinds import PLAIN, Kinds, last, tensorflow
from compat.scripts.rules.program import Edit, Program, RefusedError, Remark
from compat.scripts.source import literals

TRAINED = ("Estimator", "Classifier", "Regressor", "train_and_evaluate")
_OURS = "compat.estimator"
# And those of tf.contrib.learn.
_OTHERS = (*TRAINED, "Experiment", "learn_runner.run")
_SESSION = (
    "this session is of TensorFlow, so it works with --runtime=legacy alone; compute its values "
    "without a graph for the modern runtime"
)


def written(program: Program) -> list[Edit]:
    """Names what is of `tf.estimator` as that of `compat.estimator`."""
    name = f"{tensorflow(program)}.estimator"
    uses = [n for n in program.nodes(ast.Attribute) if literals.dotted(n) == name]
    return [Edit(*program.span(node), _OURS) for node in uses]


def trains(program: Program, tf: str, texts: Mapping[str, str]) -> bool:
    """Whether a program trains by estimators, which it or a module of its own makes.

    Raises:
      RefusedError: an estimator is of `tf.contrib.estimator` or of TPUs.
    """
    calls, kinds = program.nodes(ast.Call), Kinds(program, tf)
    if any(map(kinds.makes_session, calls)):
        return False
    found = bool(written(program)) or any(f"{_OURS}." in text for text in texts.values())
    for call in calls:
        name = literals.dotted(call.func) or ""
        if not name.endswith(_OTHERS) or name.startswith(f"{tf}.estimator."):
            continue
        parts = name.split(".")[:-1]
        if {"estimator", "tpu"} & {*parts}:
            why = f"{name} opens sessions of its own, which the legacy runtime has alone"
            raise RefusedError(program, call, f"{why}; write what {tf}.estimator has in its place")
        found |= bool({"learn", "learn_runner"} & {*parts})
    return found


def migrated(program: Program, head: str) -> migration.Migrated:
    """Returns such a program as one of `compat.estimator`, which begins with `head`."""
    edits, start = written(program), program.head()
    remarks = [Remark(c, _SESSION) for c in program.nodes(ast.Call) if last(c) in PLAIN]
    comments = migration.comments(program, remarks)
    text = program.edited([Edit(start, start, head), *comments, *edits])
    counts = {"estimators": len(edits)}
    return migration.Migrated(text, counts, migration.remarks_in(text), [])
