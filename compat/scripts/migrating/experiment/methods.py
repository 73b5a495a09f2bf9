"""How a graph updates its variables, as `optimizer`, beside `gradients` and `after_update`."""

from __future__ import annotations

import ast
from typing import Any, Mapping

from compat.scripts.migrating.experiment.after_update import AfterUpdate
from compat.scripts.migrating.experiment.gradients import INDENT
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import used
from compat.scripts.rules.program import Edit
from compat.scripts.source import literals, scopes

_SYNC = "SyncReplicas"


class Methods(AfterUpdate):
    """Writes the methods of an experiment that update its variables."""

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
        return {name: self.stepped(text) for name, text in lines.items()}, names

    def _call_of(self, node: Any) -> tuple[Any, Any]:
        parent: Any = self.program.parents[node]
        return (self.program.parents[parent] if isinstance(parent, ast.keyword) else parent), node

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
