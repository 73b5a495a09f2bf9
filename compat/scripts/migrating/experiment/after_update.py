"""What runs with an update besides it, as `after_update` of an experiment."""

from __future__ import annotations

import ast
from typing import Any, Iterable, Iterator, NamedTuple

from compat.scripts.migrating.experiment.gradients import INDENT, Gradients
from compat.scripts.migrating.experiment.updates import Updates
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import changed, used
from compat.scripts.rules.program import Edit

_NOT_FOLLOWED = "what runs with its update is not followed"


class _Part(NamedTuple):
    """What runs with an update: its text, and the names that it reads."""

    text: str
    names: set[str]


class AfterUpdate(Gradients):
    """Writes what follows an update, such as moving averages.

    Attributes:
      averages: the statements that `after_update` has.
    """

    def __init__(self, updates: Updates, before: list[Any]) -> None:
        """`before` are the statements in front of the block in its function."""
        super().__init__(updates, before)
        self.averages: list[Any] = []

    def after_update(self, fetched: list[ast.AST]) -> tuple[str, set[str]]:
        """Returns the lines of `after_update`, and the names they need, if it does anything.

        `fetched` are the nodes of what the first call that trains returns.
        """
        names = {n.id: n for node in fetched for n in ast.walk(node) if isinstance(n, ast.Name)}
        parts: list[_Part] = []
        front = self.updates.flatly
        for name, node in names.items():
            made = getattr(self.graph.assignment(name), "value", None)
            is_average = isinstance(made, ast.Call) and last(made) == "apply"
            parts += self._parts(node, front) if is_average or name in self.updates.names else []
        if not parts:
            return "", set()
        texts = [*dict.fromkeys(part.text for part in parts)]
        is_one = len(texts) == 1 and not texts[0].startswith("*")
        text = texts[0] if is_one else f"{self.graph.tf}.group({', '.join(texts)})"
        wanted = set().union(*(part.names for part in parts))
        flatly = [*self.before, *self.updates.flatly]
        without = {*self.updates.statements, self.graph.step, *self.kept([])}
        self.averages, wanted = self.pieces.needed(wanted, flatly, without)
        cut = [edit for s in self.averages if isinstance(s, ast.If) for edit in self._cut(s)]
        lines = self.pieces.take(self.averages, cut, INDENT) + f"{INDENT}return {text}\n"
        own = {self.graph.step_name} if self.graph.step is not None else set()
        own |= self.updates.names if cut else set()
        lines, wanted = self.with_built(self.stepped(lines), wanted, own)
        return lines, wanted - own

    def _parts(self, node: Any, front: list[Any]) -> list[_Part]:
        """Returns what runs in an operation besides the update itself.

        Its names are those that the statements in front of it have made.
        """
        value: Any = node.value if isinstance(node, ast.Starred) else node
        if value in self.updates.calls:
            return []
        elements = self._elements(value)
        if elements is not None:
            return self._each(elements, front)
        has_update = any(n in self.updates.calls for n in ast.walk(value))
        if has_update or used(value) & self.updates.names:
            return self._made(value, front)
        return [_Part(self.program.expression(node), used(node))]

    def _elements(self, value: Any) -> list[Any] | None:
        """Returns what a list or a group runs, or None for anything else."""
        if isinstance(value, (ast.List, ast.Tuple)):
            return value.elts
        return value.args if self.graph.called(value) == "group" else None

    def _made(self, name: Any, front: list[Any]) -> list[_Part]:
        """Returns what runs in an operation by the last statement that makes or changes it."""
        made = [i for i, s in enumerate(front) if getattr(name, "id", "") in changed(s)]
        if not made:
            self.graph.refuse(name, _NOT_FOLLOWED)
        statement, before = front[made[-1]], front[: made[-1]]
        if isinstance(statement, ast.If):
            return self._branches(name, statement, before)
        value: Any = getattr(statement, "value", None)
        if not (self.updates.follows(statement) or isinstance(value, (ast.List, ast.Tuple))):
            self.graph.refuse(statement, "it runs no update here")
        if isinstance(statement, ast.Expr):  # Such as `updates.append(...)`.
            earlier = [name] if len(made) > 1 else []
            return self._each([*earlier, *value.args], before)
        is_assigned = isinstance(statement, ast.Assign)
        if is_assigned and value in self.updates.calls:
            return []
        waits = [node for wait in self.updates.waits(statement) for node in wait.args]
        found = self._each(waits, before)
        if waits and self.graph.called(value) in ("no_op", "identity"):
            return found
        is_followed = is_assigned and (
            self._elements(value) or not used(value) & self.updates.names
        )
        if not is_followed:
            self.graph.refuse(statement, _NOT_FOLLOWED)
        return found + self._parts(value, before)

    def _each(self, nodes: Iterable[Any], front: list[Any]) -> list[_Part]:
        return [part for node in nodes for part in self._parts(node, front)]

    def _branches(self, name: Any, statement: ast.If, front: list[Any]) -> list[_Part]:
        """Returns what runs in an operation that an `if` changes, by the branch that is taken."""
        branches = map(self.updates.flat, (statement.body, statement.orelse))
        sides = [self._parts(name, [*front, *branch]) for branch in branches]
        first, second = (", ".join(part.text for part in side) for side in sides)
        if first == second:
            return sides[0]
        text = f"*([{first}] if {self.pieces.text(statement.test)} else [{second}])"
        names = set().union(*(part.names for side in sides for part in side))
        return [_Part(text, names | used(statement.test))]

    def _cut(self, statement: ast.If) -> Iterator[Edit]:
        """Yields the edits that leave out of the branches what waits for an update."""
        for branch in (statement.body, statement.orelse):
            later = [s for s in branch if changed(s) & self.updates.names]
            for inner in later:
                start, end = self.pieces.lines(inner)
                before = self.program.text[start : self.program.span(inner)[0]]
                indent = before[before.rfind("\n") + 1 :]
                is_last = len(later) == len(branch) and inner is later[-1]
                yield Edit(start, end, f"{indent}pass\n" if is_last else "")
