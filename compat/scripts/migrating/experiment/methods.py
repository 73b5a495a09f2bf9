"""How a graph updates its variables, as `optimizer`, `gradients` and `after_update`."""

from __future__ import annotations

import ast
import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple

from compat.scripts.migrating.experiment.gradients import INDENT, Gradients
from compat.scripts.migrating.experiment.updates import Updates
from compat.scripts.migrating.program import Edit
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import changed, used
from compat.scripts.source import literals, scopes

_SYNC = "SyncReplicas"


class _Part(NamedTuple):
    """What runs with an update: its text, and the names that it reads."""

    text: str
    names: set[str]


class Methods(Gradients):
    """Writes the methods of an experiment that update its variables.

    Attributes:
      averages: the statements that `after_update` has.
    """

    def __init__(self, updates: Updates, before: list[Any]) -> None:
        """`before` are the statements in front of the block in its function."""
        super().__init__(updates, before)
        self.averages: list[Any] = []

    def optimizer(
        self, numbers: Mapping[str, str], rates: set[str], settings: dict[str, str]
    ) -> tuple[dict[str, str], set[str]]:
        """Returns the lines of `optimizer`, and of `learning_rate` if need be, and their names.

        Args:
          numbers: what the placeholders are that are fed a number, as text.
          rates: what reads a flag `learning_rate`, as text; none if it has none.
          settings: defaults of settings; a constant learning rate becomes one.
        """
        graph, statements = self.graph, [*self.before, *self.graph.statements]
        without = {s for s in [*self.before, *self.updates.flatly] if self._is_sync(s)}
        without |= {graph.step}
        placed = [(graph.placeholders[n].statement.value, text) for n, text in numbers.items()]
        edits = [Edit(*self.program.span(node), text) for node, text in placed]
        made = [self._own(call.func.value) for call in self.updates.calls]
        rate = self._rate(made)
        text = self.program.expression(rate) if rate is not None else ""
        lines: dict[str, str] = {}
        names: set[str] = set()
        if literals.value(rate) is not None and not rates:
            settings["learning_rate"] = f"{text}.0" if text.isdigit() else text
            edits.append(Edit(*self.program.span(rate), "self.settings.learning_rate"))
        elif rate is not None and text not in rates:
            own = f"{INDENT}return {text}\n", used(rate)
            how: Any = {"without": {*without}, "edits": [*edits]}
            lines["learning_rate"], names = self.written(statements, lambda *_: own, **how)
            span = self.program.argument(*self._call_of(rate))
            edits.append(Edit(*span, "self.learning_rate(step)"))
            without |= {rate}

        def write(call: Any, indent: str) -> tuple[str, set[str]]:
            node = self._own(call.func.value)
            text = self.program.edited({*edits}, self.program.span(node))
            return f"{indent}return {text}\n", used(node, without)

        found = self.written(statements, write, without=without, edits=edits)
        lines["optimizer"], names = found[0], found[1] | names
        if names & set(graph.placeholders) - set(numbers):
            graph.refuse(self.updates.statements[0], "its optimizer depends on what is fed")
        return {name: self._stepped(text) for name, text in lines.items()}, names

    def _stepped(self, lines: str) -> str:
        """Returns the lines of a method that is given the step."""
        name = self.graph.step_name
        is_read = name != "step" and name in re.findall(r"\w+", lines)
        return f"{INDENT}{name} = step\n{lines}" if is_read else lines

    def _call_of(self, node: Any) -> tuple[Any, Any]:
        parent: Any = self.updates.parents[node]
        return (self.updates.parents[parent] if isinstance(parent, ast.keyword) else parent), node

    def _own(self, made: Any) -> Any:
        """Returns the optimizer of which one for synchronous replicas is made, or the same."""
        statement = self.graph.assignment(getattr(made, "id", ""))
        if isinstance(made, ast.Call) and self._is_sync(made):
            call: Any = made
        elif statement is None or not self._is_sync(statement):
            return made
        else:
            call = statement.value
        words = [word.value for word in call.keywords if word.arg == "opt"]
        return [*call.args, *words, made][0]

    def _is_sync(self, node: ast.AST) -> bool:
        """Whether a statement makes an optimizer for synchronous replicas, and no update."""
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        is_update = isinstance(node, ast.stmt) and self.updates.trains(node)
        return not is_update and any(last(call).startswith(_SYNC) for call in calls)

    def _rate(self, made: list[Any]) -> Any:
        """Returns the learning rate of the one optimizer that there is, or None."""
        calls: set[Any] = set()
        for node in made:
            name = getattr(node, "id", "")
            found = [
                s.value
                for s in [*self.before, *self.updates.flatly]
                if isinstance(s, ast.Assign) and name in scopes.bound([s]) and not self._is_sync(s)
            ]
            calls.add(found[0] if len(found) == 1 else node)
        call: Any = calls.pop() if len(calls) == 1 else None
        name = self.graph.called(call)
        if not (name.startswith("train.") and name.endswith("Optimizer")):
            return None
        words = [word.value for word in call.keywords if word.arg == "learning_rate"]
        return [*call.args[:1], *words, None][0]

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
        lines, wanted = self.with_built(self._stepped(lines), wanted, own)
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
