"""What a program builds, as `loss` of an experiment."""

from __future__ import annotations

import ast
from typing import Any

from compat.scripts.migrating.experiment.methods import Methods
from compat.scripts.migrating.experiment.updates import Updates
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.rules.program import Edit
from compat.scripts.source import literals, scopes


class Model:
    """The statements of a graph, by what they are for.

    Attributes:
      updates: the calls that update its variables.
      outputs: the names of what is fetched beside the loss.
      lost: those that are made of gradients, which `loss` does not know.
      unfed: those that need a placeholder which training does not feed.
    """

    def __init__(self, graph: Graph, pieces: Pieces) -> None:
        self.graph, self.pieces, self.program = graph, pieces, graph.program
        self.updates = Updates(graph, pieces)
        self.lost: list[str] = []
        self.unfed: list[str] = []
        self.outputs = self._fetched()
        self._edits: list[Edit] = []

    def _fetched(self) -> list[str]:
        """Returns the names of tensors that sessions fetch beside the loss and the update."""
        graph = self.graph
        names: list[str] = []
        loss, updates = self.updates.loss, self.updates.names
        inside = {n for s in graph.statements for n in ast.walk(s)}
        for call in self.program.nodes(ast.Call):
            if last(call) not in ("run", "eval") or not call.args or call in inside:
                continue
            first = call.args[0]
            for node in getattr(first, "elts", [first]):
                name = getattr(node, "id", "")
                value = getattr(graph.assignment(name), "value", None)
                is_tensor = name in graph.tensors & graph.always - set(graph.placeholders)
                is_value = value is not None and not (
                    graph.called(value) or _called(value)
                ).endswith(_NO_VALUES)
                known = {loss, graph.step_name, *updates, *graph.operations, *names}
                if name in self.updates.later_names - updates:
                    if not used(first) & updates:  # As where gradients are added up.
                        graph.refuse(call, f"it runs {name}, made of gradients, without its update")
                    self.lost += [name] if name not in self.lost else []
                elif is_tensor and is_value and name not in known:
                    names.append(name)
        return names

    def loss(
        self, inputs: dict[str, str], before: list[ast.stmt], methods: Methods
    ) -> tuple[str, set[str]]:
        """Returns the lines of `loss`, and the names that they need.

        Args:
          inputs: what each placeholder is there, as text.
          before: the statements in front of the block in its function.
          methods: the other methods, as they have been written.
        """
        graph = self.graph
        self._edits = []
        waits, loss = self.updates.before(), self.updates.loss
        unfed = graph.placeholders.keys() - inputs.keys()
        front = [*before, *self.updates.flatly]
        self.unfed = [n for n in self.outputs if self.pieces.needed({n}, front)[1] & unfed]
        self.outputs = [name for name in self.outputs if name not in self.unfed]
        wanted = {loss, *self.outputs, *methods.built}.union(*map(used, waits))
        kept = self._kept(graph.statements, wanted)
        elsewhere, names = self.pieces.needed(wanted, before)
        for name, placeholder in graph.placeholders.items():
            if name in inputs:
                span = self.program.span(placeholder.statement.value)
                self._edits.append(Edit(*span, inputs[name]))
            elif name in names:
                graph.refuse(placeholder.statement, f"it trains without feeding {name}")
        for name in inputs.keys() - graph.placeholders.keys():
            span = self.program.span(graph.assignment(name).value)
            self._edits.append(Edit(*span, inputs[name]))
        if graph.step is not None:
            span = self.program.span(graph.step.value)
            self._edits.append(Edit(*span, "compat.get_or_create_global_step()"))
        cuts = [e for e in self._edits if not e.text]
        self._edits = [e for e in self._edits if not any(_is_in(e, cut) for cut in cuts)]
        lines = self.pieces.take([*elsewhere, *kept], self._edits, " " * 8)
        outputs = ", ".join(f'"{name}": {name}' for name in self.outputs)
        if {*kept} & {*methods.averages}:
            graph.refuse(methods.averages[0], "it reads the moving averages of its variables")
        lines += self._waiting(waits) if waits else ""
        built = ", ".join(f'"{name}": {name}' for name in methods.built)
        lines += f"        self.built = {{{built}}}\n" if built else ""
        # TensorFlow minimizes the sum of a loss with several elements.
        returned = loss if self._is_number(loss) else f"{graph.tf}.reduce_sum({loss})"
        returned += f", {{{outputs}}}" if outputs else ""
        return f"{lines}        return {returned}\n", names

    def _is_number(self, name: str) -> bool:
        """Whether a tensor may be a number: what makes it has no shape, or reduces something."""
        functions = {f.name: f for f in self.program.nodes(ast.FunctionDef)}
        entered: set[str] = set()
        made, _ = self.pieces.needed({name}, self.updates.flatly)
        for statement in made:  # More are added on the way, of functions that are called.
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                function = functions.get(last(call))
                called = self.graph.called(call)
                if _reduces(called) or (function is None and not called):
                    return True
                if function is not None and function.name not in entered:
                    entered.add(function.name)
                    made += self._making(function)
        lists = [n for s in made for n in ast.walk(s) if isinstance(n, (ast.List, ast.Tuple))]
        return not any(n.elts and isinstance(n.ctx, ast.Load) for n in lists)

    def _making(self, function: ast.FunctionDef) -> list[Any]:
        """Returns the statements that make what a function returns, also those in front of it."""
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
        wanted = set().union(*map(used, returns))
        inside, read = self.pieces.needed(wanted, self.updates.flat(function.body))
        outside, _ = self.pieces.needed(read, self.updates.flatly)
        return [*outside, *inside, *returns]

    def _waiting(self, waits: list[Any]) -> str:
        """Returns the lines that run these operations with the loss of each update."""
        loss, words = self.updates.loss, ", ".join(map(self.pieces.text, waits))
        lines = f"        if training:\n            with {words}:\n"
        return f"{lines}                {loss} = {self.graph.tf}.identity({loss})\n"

    def _kept(self, statements: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
        """Returns the statements that make what is wanted, and adds what they need to it."""
        kept: list[ast.stmt] = []
        for statement in reversed(statements):
            if statement in self.updates.later:
                continue
            if isinstance(statement, ast.With):
                inner = self._kept(statement.body, wanted)
                if inner:
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


# Calls whose results are fetched, but are not numbers: summaries and operations.
_NO_VALUES = (
    "merge_all",
    "merge",
    "merge_summary",
    "merge_all_summaries",
    "no_op",
    "group",
    "apply",
)


def _is_in(edit: Edit, cut: Edit) -> bool:
    return edit is not cut and cut.start <= edit.start and edit.end <= cut.end


def _reduces(name: str) -> bool:
    """Whether what is called may make a number of a tensor."""
    return name.startswith(("reduce_", "losses.", "contrib.", "math.reduce")) or name in (
        *("nn.l2_loss", "add_n", "get_collection", "py_func"),
        *("while_loop", "scan", "foldl", "map_fn", "cond", "einsum", "tensordot"),
    )


def _called(node: ast.AST) -> str:
    return last(node) if isinstance(node, ast.Call) else ""
