"""The calls of a graph that update its variables."""

from __future__ import annotations

import ast
from typing import Any, Iterable, Iterator

from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import TRAINS, last
from compat.scripts.migrating.steps.pieces import Pieces, changed, used
from compat.scripts.source import literals

# Arguments of `minimize`, `compute_gradients`, `apply_gradients` and `tf.gradients`, in order.
_WORDS = {
    "minimize": ("loss", "global_step", "var_list"),
    "compute_gradients": ("loss", "var_list"),
    "apply_gradients": ("grads_and_vars", "global_step"),
    "gradients": ("ys", "xs"),
}
# Those that change no value.
_FREE_WORDS = {"name", "aggregation_method", "colocate_gradients_with_ops", "gate_gradients"}


class Updates:
    """The calls that make what updates the variables, and what depends on them.

    Attributes:
      calls: one, or one in each branch of an `if`.
      statements: those that they are in.
      made: the call that computes the gradients, or None where `minimize` does.
      loss: the name of what is minimized.
      names: those of the updates, such as `train_op`.
      later: the statements that depend on gradients or updates, which are no part of the loss.
      later_names: the names that these bind.
      flatly: the statements of the graph, without the blocks around them.
    """

    def __init__(self, graph: Graph, pieces: Pieces) -> None:
        self.graph, self.pieces = graph, pieces
        self.program = graph.program
        nodes = [n for s in graph.statements for n in ast.walk(s) if isinstance(n, ast.Call)]
        self.calls: list[Any] = [call for call in nodes if last(call) in TRAINS]
        self.statements = [self._statement(call) for call in self.calls]
        if not self.calls:
            graph.refuse(graph.block, "its block calls no optimizer")
        if self._branches(graph.statements) != {1}:
            name = min(map(last, self.calls), key=TRAINS.index)
            graph.refuse(graph.block, f"it calls {name}() {len(self.calls)} times in its block")
        self.flatly = [*self.flat(graph.statements)]
        computes = ("compute_gradients", f"{graph.tf}.gradients")
        self._computes = [n for n in nodes if literals.dotted(n.func).endswith(computes)]
        self.made = self._made()
        self.loss = self._loss()
        _, self.names = self._downstream(self.statements)
        starts = [self._statement(self.made)] if self.made is not None else []
        self.later, self.later_names = self._downstream([*self.statements, *starts])

    def _statement(self, node: Any) -> Any:
        while not isinstance(node, ast.stmt):
            node = self.program.parents[node]
        return node

    def _branches(self, statements: Iterable[Any]) -> set[int]:
        """Returns how many of the calls are made, for each way through some statements."""
        found = {0}
        for statement in statements:
            if statement in self.statements:
                number = {self.statements.count(statement)}
            elif isinstance(statement, ast.If):
                number = self._branches(statement.body) | self._branches(statement.orelse)
                if number == {0, 1} and len(self.calls) == 1:
                    number = {1}  # As in `if FLAGS.train:`.
            else:
                number = self._branches(getattr(statement, "body", []))
            found = {a + b for a in found for b in number}
        return found

    def flat(self, statements: Iterable[Any]) -> Iterator[Any]:
        """Yields statements without the blocks around them, also of one `if` that trains."""
        for statement in statements:
            bodies = [getattr(statement, name, []) for name in ("body", "orelse")]
            trains = [body for body in bodies if any(map(self.trains, body))]
            if isinstance(statement, ast.With):
                yield from self.flat(statement.body)
            elif isinstance(statement, ast.If) and len(trains) == 1:
                yield from self.flat(trains[0])
            else:
                yield statement

    def trains(self, statement: ast.AST) -> bool:
        return any(node in self.statements for node in ast.walk(statement))

    def given(self, call: Any) -> dict[str, Any]:
        """Returns the arguments of a call that computes or applies gradients, by their names."""
        known = _WORDS[last(call)]
        given = dict(zip(known, call.args))
        for word in call.keywords:
            if word.arg in known:
                given[str(word.arg)] = word.value
            elif word.arg not in _FREE_WORDS:
                self.graph.refuse(call, f"{last(call)}() has the argument {word.arg}")
        if len(call.args) > len(known):
            self.graph.refuse(call, f"{last(call)}() has more than {len(known)} arguments")
        return given

    def _made(self) -> Any:
        applied = [call for call in self.calls if last(call) == "apply_gradients"]
        found: list[Any] = []
        for call in applied:
            pairs: Any = self.given(call).get("grads_and_vars")
            if pairs is None:
                self.graph.refuse(call, "apply_gradients() has no gradients")
            front = [s for s in self.flatly if s not in self.statements]
            more, _ = self.pieces.needed(used(pairs, self._computes), front, self._computes)
            inside = {n for part in [*more, call] for n in ast.walk(part)}
            found += [n for n in self._computes if n in inside and n not in found]
            if not found:
                self.graph.refuse(call, "the gradients that it applies are not followed")
        if len(found) > 1 or (found and len(applied) < len(self.calls)):
            self.graph.refuse(found[0], "it computes gradients in several places")
        return found[0] if found else None

    def _loss(self) -> str:
        found: list[str] = []
        for call in [self.made] if self.made is not None else self.calls:
            given = self.given(call)
            loss: Any = given.get("ys", given.get("loss"))
            if not isinstance(loss, ast.Name):
                self.graph.refuse(call, "what it minimizes has no name")
            found.append(loss.id)
        if len({*found}) > 1:
            self.graph.refuse(self.calls[0], f"it minimizes {' and '.join(sorted({*found}))}")
        return found[0]

    def _downstream(self, starts: list[Any]) -> tuple[list[Any], set[str]]:
        """Returns statements with those that depend on what they bind, and the names of all."""
        names: set[str] = set()
        found: list[Any] = []
        for statement in self.flatly:
            for part in self._branched(statement):
                if self._depends(part, starts, names):
                    found += [statement] if statement not in found else []
                    names |= changed(part) - {"_"}
        return found, names

    def _branched(self, statement: Any) -> Iterator[Any]:
        """Yields a statement, or those in the branches of an `if`."""
        branches = (statement.body, statement.orelse) if isinstance(statement, ast.If) else ()
        for inner in map(self.flat, branches):
            for part in inner:
                yield from self._branched(part)
        if not branches:
            yield statement

    def _depends(self, statement: Any, starts: list[Any], names: set[str]) -> bool:
        waits = set().union(*map(used, self.waits(statement)))
        is_start = not {*ast.walk(statement)}.isdisjoint(starts)
        return is_start or bool((used(statement) | waits) & names)

    def follows(self, statement: Any) -> bool:
        """Whether a statement makes an update, or depends on one."""
        return any(self._depends(s, self.statements, self.names) for s in self._branched(statement))

    def waits(self, node: Any) -> list[Any]:
        """Returns the control dependencies that a node of the block is built with."""
        found: list[Any] = []
        while node is not self.graph.block:
            node = self.program.parents[node]
            items = [item.context_expr for item in getattr(node, "items", [])]
            found += [i for i in items if self.graph.called(i) == "control_dependencies"]
        return found

    def before(self) -> list[Any]:
        """Returns the operations that run before the update, such as those of normalization."""
        nodes = [*self.statements, *([self.made] if self.made is not None else [])]
        found = [*dict.fromkeys(wait for node in nodes for wait in self.waits(node))]
        for wait in found:
            if used(wait) & self.later_names:
                self.graph.refuse(wait, "what runs before its update depends on the gradients")
        return found
