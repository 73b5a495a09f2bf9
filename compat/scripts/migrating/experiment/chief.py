"""What the chief alone adds to a graph: the graph of an experiment is the same in all tasks."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from compat.scripts.migrating.steps import conditions
from compat.scripts.migrating.steps.kinds import Kinds, last
from compat.scripts.rules.program import Program
from compat.scripts.source import literals

# What the number of a task is called; that of the chief is 0.
NUMBERS = ("task_index", "task_id")


def everywhere(program: Program, tf: str) -> tuple[Program, bool]:
    """Returns a program in which each task adds what the chief does, and whether it is another."""
    kinds = Kinds(program, tf)

    def adds(node: ast.If) -> bool:
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        runs = kinds.uses_session(node) or any(last(call) in ("run", "eval") for call in calls)
        return kinds.builds(node) and not runs

    new = conditions.settled(program, _known(program), adds)
    return new, new is not program


def _known(program: Program) -> dict[str, Any]:
    """Returns the values that names and attributes have in the chief, and no other task."""
    paths = map(literals.dotted, program.nodes(ast.Attribute))
    values: dict[str, Any] = {path: 0 for path in paths if path.endswith(NUMBERS)}
    stored = [n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Store)]
    times = Counter(stored)
    for node in program.nodes(ast.Assign):
        name = literals.dotted(node.targets[0])
        if times[name] == 1 and conditions.truth(node.value, {}) is None:
            found = values.get(literals.dotted(node.value), conditions.truth(node.value, values))
            values.update({name: found} if found is not None else {})
    return values
