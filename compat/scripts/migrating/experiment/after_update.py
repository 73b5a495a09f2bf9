"""What runs with an update besides it, as `after_update` of an experiment."""

from __future__ import annotations

import ast
from typing import Any, Iterable, Iterator, NamedTuple

from compat.scripts.migrating.experiment.gradients import INDENT, Gradients
from compat.scripts.migrating.experiment.updates import Updates
from compat.scripts.migrating.program import Edit
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import changed, used


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
        updates, graph = self.updates, self.graph
        value: Any = node.value if isinstance(node, ast.Starred) else node
        calls = {n for n in ast.walk(value) if n in updates.calls}
        if value in calls:
            return []
        if isinstance(value, (ast.List, ast.Tuple)) or graph.called(value) == "group":
            return self._each(getattr(value, "elts", getattr(value, "args", ())), front)
        if not (calls or used(value) & updates.names):
            return [_Part(self.program.expression(node), used(node))]
        name = getattr(value, "id", "")
        made = [i for i, s in enumerate(front) if name in changed(s)]
        statement: Any = front[made[-1]] if made else None
        front = front[: made[-1]] if made else []
        if isinstance(statement, ast.If):
            return self._branches(value, statement, front)
        new: Any = getattr(statement, "value", None)
        if made and not (updates.follows(statement) or isinstance(new, (ast.List, ast.Tuple))):
            graph.refuse(statement, "it runs no update here")
        if isinstance(statement, ast.Expr):  # Such as `updates.append(...)`.
            return self._each([*[value] * (len(made) > 1), *new.args], front)
        waits = [a for wait in updates.waits(statement) for a in wait.args] if statement else []
        is_own = isinstance(new, ast.Call) and new in updates.calls
        found = [] if is_own else self._each(waits, front)
        if graph.called(new) in ("no_op", "identity") and waits:
            return found
        is_group = graph.called(new) == "group" or isinstance(new, (ast.List, ast.Tuple))
        depends = not (is_own or is_group) and bool(used(new) & updates.names) if new else True
        if depends or not isinstance(statement, ast.Assign):
            graph.refuse(statement or node, "what runs with its update is not followed")
        return found + self._parts(new, front)

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
