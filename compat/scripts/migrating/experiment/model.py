"""What a program builds, as `loss` and `optimizer` of an experiment."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from compat.scripts.migrating.program import Edit
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.source import literals, scopes

_SYNC = "SyncReplicas"


class Trained(NamedTuple):
    """The call that makes what updates the variables."""

    call: ast.Call  # `optimizer.minimize(loss)`.
    statement: ast.stmt  # The one that it is in.
    loss: Any  # What is minimized.
    optimizer: Any  # What minimizes it.


class Model:
    """The statements of a graph, by what they are for.

    Attributes:
      trained: the call that makes the update.
      outputs: the names of what is fetched beside the loss.
    """

    def __init__(self, graph: Graph, pieces: Pieces) -> None:
        self.graph, self.pieces, self.program = graph, pieces, graph.program
        self.parents = scopes.parents(self.program.tree)
        self.trained = self._find()
        self.outputs = self._fetched()
        self._edits: list[Edit] = []

    def _find(self) -> Trained:
        graph = self.graph
        calls = [n for s in graph.statements for n in ast.walk(s) if isinstance(n, ast.Call)]
        found = [call for call in calls if last(call) == "minimize"]
        if len(found) != 1:
            graph.refuse(graph.block, f"it calls minimize() {len(found)} times in its block")
        call: Any = found[0]
        loss = call.args[0] if call.args else self._word(call, "loss")
        statement: Any = call
        while not isinstance(statement, ast.stmt):
            statement = self.parents[statement]
        if not isinstance(loss, ast.Name):
            graph.refuse(call, "what it minimizes has no name")
        if len(call.args) > 2:
            graph.refuse(call, "minimize() has more than two arguments")
        for word in call.keywords:
            if word.arg not in ("loss", "global_step", "name"):
                graph.refuse(call, f"minimize() has the argument {word.arg}")
        return Trained(call, statement, loss, call.func.value)

    def _word(self, call: ast.Call, name: str) -> Any:
        return next((word.value for word in call.keywords if word.arg == name), None)

    def _fetched(self) -> list[str]:
        """Returns the names of tensors that sessions fetch beside the loss and the update."""
        graph = self.graph
        names: list[str] = []
        loss = self.trained.loss.id
        updates = scopes.bound([self.trained.statement])
        inside = {n for s in graph.statements for n in ast.walk(s)}
        for call in self.program.nodes(ast.Call):
            if last(call) not in ("run", "eval") or not call.args or call in inside:
                continue
            first = call.args[0]
            for node in getattr(first, "elts", [first]):
                name = getattr(node, "id", "")
                value = getattr(graph.assignment(name), "value", None)
                is_tensor = name in graph.tensors & graph.always - set(graph.placeholders)
                is_value = value is not None and not graph.called(value).endswith(_NO_VALUES)
                known = {loss, graph.step_name, *updates, *graph.operations, *names}
                if is_tensor and is_value and name not in known:
                    names.append(name)
        return names

    def loss(self, inputs: dict[str, str], before: list[ast.stmt]) -> tuple[str, set[str]]:
        """Returns the lines of `loss`, and the names that they need.

        Args:
          inputs: what each placeholder is there, as text.
          before: the statements in front of the block in its function.
        """
        graph = self.graph
        self._edits = []
        wanted = {self.trained.loss.id, *self.outputs}.union(*map(used, self._waits()))
        placed = {p.statement for p in graph.placeholders.values()}
        kept = self._kept(graph.statements, wanted)
        for name, placeholder in graph.placeholders.items():
            if name in inputs:
                span = self.program.span(placeholder.statement.value)
                self._edits.append(Edit(*span, inputs[name]))
            elif name in wanted:
                graph.refuse(placeholder.statement, f"it trains without feeding {name}")
        for name in inputs.keys() - graph.placeholders.keys():
            span = self.program.span(graph.assignment(name).value)
            self._edits.append(Edit(*span, inputs[name]))
        if graph.step is not None:
            span = self.program.span(graph.step.value)
            self._edits.append(Edit(*span, "compat.get_or_create_global_step()"))
        elsewhere, names = self.pieces.needed(wanted, before, without=placed)
        outside = [s for s in before if s in placed and scopes.bound([s]) & wanted]
        lines = self.pieces.take([*elsewhere, *outside, *kept], self._edits, " " * 8)
        outputs = ", ".join(f'"{name}": {name}' for name in self.outputs)
        waits, names = self._waits(), names | wanted
        if waits:
            lines += self._waiting(waits)
        returned = self.trained.loss.id + (f", {{{outputs}}}" if outputs else "")
        return f"{lines}        return {returned}\n", names

    def _waits(self) -> list[Any]:
        """Returns the operations that run before the update, such as those of normalization."""
        found: list[Any] = []
        node: Any = self.trained.statement
        while node is not self.graph.block:
            node = self.parents[node]
            items = [item.context_expr for item in getattr(node, "items", [])]
            found += [i for i in items if self.graph.called(i) == "control_dependencies"]
        return found

    def _waiting(self, waits: list[Any]) -> str:
        """Returns the lines that run these operations with the loss of each update."""
        loss, words = self.trained.loss.id, ", ".join(map(self.pieces.text, waits))
        lines = f"        if training:\n            with {words}:\n"
        return f"{lines}                {loss} = {self.graph.tf}.identity({loss})\n"

    def _kept(self, statements: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
        """Returns the statements that make what is wanted, and adds what they need to it."""
        kept: list[ast.stmt] = []
        for statement in reversed(statements):
            if statement is self.trained.statement:
                continue
            if isinstance(statement, ast.With):
                inner = self._kept(statement.body, wanted)
                if self._is_placement(statement):  # An experiment places what it builds.
                    kept = [*inner, *kept]
                elif inner:
                    kept.insert(0, statement)
                    wanted |= {n for item in statement.items for n in used(item)}
                    for other in statement.body:
                        if other not in inner:
                            self._edits.append(Edit(*self.pieces.lines(other), ""))
                continue
            bound = scopes.bound([statement])
            is_text = isinstance(statement, ast.Expr) and bool(literals.text(statement.value))
            is_call = isinstance(statement, ast.Expr) and self.graph.kinds.builds(statement)
            records = any(
                self.graph.called(node).startswith(("summary.", "add_to_collection"))
                for node in ast.walk(statement)
            )
            if isinstance(statement, ast.For):
                bound -= scopes.bound([statement.target])
            if bound & wanted or is_text or is_call or (records and not bound):
                kept.insert(0, statement)
                wanted |= used(statement)
        return kept

    def _is_placement(self, statement: ast.With) -> bool:
        return all(self.graph.called(i.context_expr) == "device" for i in statement.items)

    def optimizer(self, before: list[ast.stmt], numbers: dict[str, str]) -> tuple[str, set[str]]:
        """Returns the lines of `optimizer`, and the names that they need.

        Args:
          before: as for `loss`.
          numbers: what the placeholders are that are fed a number, as text.
        """
        graph, made = self.graph, self._own(self.trained.optimizer)
        statements = [*before, *self._flat(graph.statements)]
        wanted = used(made)
        without = [s for s in statements if self._is_sync(s) or s is self.trained.statement]
        if graph.step is not None:
            without.append(graph.step)
        found, names = self.pieces.needed(wanted, statements, without)
        if names & set(graph.placeholders) - set(numbers):
            graph.refuse(self.trained.statement, "its optimizer depends on what is fed")
        placed = {n: graph.placeholders[n].statement for n in names & set(numbers)}
        edits = [Edit(*self.program.span(s.value), numbers[n]) for n, s in placed.items()]
        lines = self.pieces.take(found, edits, " " * 8)
        if graph.step_name in names - {"step"}:
            lines = f"        {graph.step_name} = step\n{lines}"
        self.pieces.moved.append(self.pieces.lines(self.trained.statement))
        text = self.program.text[slice(*self.program.span(made))]
        return f"{lines}        return {text}\n", names

    def _own(self, made: Any) -> Any:
        """Returns the optimizer of which one for synchronous replicas is made, or the same."""
        statement = self.graph.assignment(getattr(made, "id", ""))
        if statement is None or not self._is_sync(statement):
            return made
        call = statement.value
        return call.args[0] if call.args else self._word(call, "opt") or made

    def _flat(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            found += self._flat(statement.body) if isinstance(statement, ast.With) else [statement]
        return found

    def _is_sync(self, statement: ast.stmt) -> bool:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return any(last(call).startswith(_SYNC) for call in calls)


# Calls whose results are fetched, but are not numbers: summaries and operations.
_NO_VALUES = ("merge_all", "merge", "merge_summary", "merge_all_summaries", "no_op", "group")
