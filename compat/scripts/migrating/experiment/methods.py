"""How a graph updates its variables, as `optimizer`, `gradients` and `after_update`."""

from __future__ import annotations

import ast
import re
from typing import Any, Mapping

from compat.scripts.migrating.experiment.gradients import INDENT, Gradients
from compat.scripts.migrating.experiment.updates import Updates, changed
from compat.scripts.migrating.program import Edit
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import used
from compat.scripts.source import literals, scopes

_SYNC = "SyncReplicas"


class Methods(Gradients):
    """Writes the methods of an experiment that update its variables.

    Attributes:
      averages: the statements that `after_update` has.
    """

    def __init__(self, updates: Updates, before: list[Any]) -> None:
        """`before` are the statements in front of the block in its function."""
        super().__init__(updates, before)
        self.averages: list[Any] = []

    def _edited(self, node: Any, edits: list[Edit]) -> str:
        """Returns the text of an expression after edits."""
        start, end = self.program.span(node)
        inner = {e for e in edits if start <= e.start and e.end <= end}
        text, position = "", start
        for edit in sorted(inner, key=lambda edit: edit[:2]):
            text += self.program.text[position : edit.start] + edit.text
            position = edit.end
        return text + self.program.text[position:end]

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
            return f"{indent}return {self._edited(node, edits)}\n", used(node, without)

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
        parts: list[Any] = []
        for name, node in names.items():
            made = getattr(self.graph.assignment(name), "value", None)
            is_average = isinstance(made, ast.Call) and last(made) == "apply"
            parts += self._parts(node) if is_average or name in self.updates.names else []
        if not parts:
            return "", set()
        texts = [*dict.fromkeys(map(self.program.expression, parts))]
        is_one = len(texts) == 1 and not isinstance(parts[0], ast.Starred)
        text = texts[0] if is_one else f"{self.graph.tf}.group({', '.join(texts)})"
        wanted = set().union(*map(used, parts))
        flatly = [*self.before, *self.updates.flatly]
        without = {*self.updates.statements, self.graph.step, *self.kept([])}
        self.averages, wanted = self.updates.needed(wanted, flatly, without)
        lines = self.pieces.take(self.averages, [], INDENT) + f"{INDENT}return {text}\n"
        own = {self.graph.step_name} if self.graph.step is not None else set()
        lines, wanted = self.with_built(self._stepped(lines), wanted, own)
        return lines, wanted - own

    def _parts(self, node: Any, before: int | None = None) -> list[Any]:
        """Returns what runs in an operation besides the update itself.

        Its names are those that the statements `before` one have made, by its number.
        """
        updates, graph = self.updates, self.graph
        value: Any = node.value if isinstance(node, ast.Starred) else node
        calls = {n for n in ast.walk(value) if n in updates.calls}
        if value in calls or not (calls or used(value) & updates.names):
            return [] if value in calls else [node]
        if isinstance(value, (ast.List, ast.Tuple)):
            return [part for element in value.elts for part in self._parts(element, before)]
        if graph.called(value) == "group":
            return [part for argument in value.args for part in self._parts(argument, before)]
        name = getattr(value, "id", "")
        front = updates.flatly[:before]
        made = [i for i, s in enumerate(front) if name in changed(s) and s in updates.later]
        statement = front[made[-1]] if made else None
        inside = {*ast.walk(statement)} if isinstance(statement, ast.If) else set()
        branches = [s for s in updates.statements if s in inside]
        if branches and all(getattr(s, "value", None) in updates.calls for s in branches):
            return []
        new: Any = getattr(statement, "value", None)
        if isinstance(statement, ast.Expr):  # Such as `updates.append(...)`.
            rest = [value] if len(made) > 1 else []
            return [part for a in [*rest, *new.args] for part in self._parts(a, made[-1])]
        waits = [a for wait in updates.waits(statement) for a in wait.args] if statement else []
        is_own = isinstance(new, ast.Call) and new in updates.calls
        found = [part for a in ([] if is_own else waits) for part in self._parts(a, made[-1])]
        if new is None or not isinstance(statement, ast.Assign):
            graph.refuse(statement or node, "what runs with its update is not followed")
        if graph.called(new) in ("no_op", "identity") and waits:
            return found
        is_group = graph.called(new) == "group" or isinstance(new, (ast.List, ast.Tuple))
        if not (is_own or is_group) and used(new) & updates.names:
            graph.refuse(statement or node, "what runs with its update is not followed")
        return found + self._parts(new, made[-1])
