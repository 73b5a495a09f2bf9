"""What is done to gradients, as `gradients` of an experiment."""

from __future__ import annotations

import ast
import re
from typing import Any, Callable

from compat.scripts.migrating.experiment.updates import Updates
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import used
from compat.scripts.rules.program import Edit
from compat.scripts.source import literals, scopes

INDENT = " " * 8
_VARIABLES = "trainable_variables"
# What can be called once more outside of `loss`.
_AGAIN = ("get_collection", "train.ExponentialMovingAverage", "apply", "startswith", _VARIABLES)
_UNCHANGED = re.compile(r" +(?:(\w+) = pairs\n +return \1|return pairs)\n")
_ALL = "[variable for _, variable in pairs]"
_CHOSEN = "[pair for pair in pairs if any(pair[1] is v for v in {})]"
_Write = Callable[[Any, str], "tuple[str, set[str]]"]


class Gradients:
    """Writes methods from the statements of a graph that lead to its updates.

    Attributes:
      built: the names of the loss that these methods need.
    """

    def __init__(self, updates: Updates, before: list[Any]) -> None:
        """`before` are the statements in front of the block in its function."""
        self.updates, self.before = updates, before
        self.graph, self.program, self.pieces = updates.graph, updates.program, updates.pieces
        self.built: list[str] = []

    def written(self, statements: list[Any], write: _Write, **how: Any) -> tuple[str, set[str]]:
        """Returns the lines that return what `write` makes of the call, and the names they need.

        Those in front of it that it needs, and those that are `always` there, are kept, but not
        those `without` which it is done; branches with the same lines become one.
        """
        updates, indent = self.updates, how.get("indent", INDENT)
        flatly = [*updates.flat(statements)]
        at = next(s for s in flatly if updates.trains(s))
        if isinstance(at, ast.If):
            sides = [self.written(s, write, **how) for s in (at.body, at.orelse)]
            lines, names = sides[0]
            if lines != sides[1][0]:
                deep = {**how, "indent": indent + "    "}
                sides = [self.written(s, write, **deep) for s in (at.body, at.orelse)]
                names = sides[0][1] | sides[1][1] | used(at.test)
                lines = f"{indent}if {self.pieces.text(at.test)}:\n{sides[0][0]}"
                lines += f"{indent}else:\n{sides[1][0]}"
        else:
            lines, names = write(updates.calls[updates.statements.index(at)], indent)
            self.pieces.moved.append(self.pieces.lines(at))
        front = flatly[: flatly.index(at)]
        found, names = self.pieces.needed(names, front, how["without"], how.get("always", ()))
        return self.pieces.take(found, how["edits"], indent) + lines, names

    def gradients(self) -> tuple[str, set[str]]:
        """Returns the lines of `gradients`, and the names that they need; none if it needs none."""
        updates, graph = self.updates, self.graph
        made = updates.made
        lists = [updates.given(call) for call in ([made] if made is not None else updates.calls)]
        chosen = [given.get("xs", given.get("var_list")) for given in lists]
        chosen = [None if self._is_all(node) else node for node in chosen]
        if made is None and not any(chosen):
            return "", set()
        if len({self.pieces.text(node) if node is not None else "" for node in chosen}) > 1:
            graph.refuse(updates.statements[0], "its branches update different variables")
        self._refuse_places()
        first, names = self._chosen(chosen[0]) if chosen[0] is not None else ("", set())
        edits, without = self._replaced(chosen[0])
        if made is None:
            lines = f"{INDENT}return pairs\n"
            return self.with_built(first + lines, names, set())

        def write(call: Any, indent: str) -> tuple[str, set[str]]:
            pairs = updates.given(call)["grads_and_vars"]
            start, end = self.program.span(updates.statements[updates.calls.index(call)])
            inner = self.program.argument(call, pairs)
            cut = [Edit(start, inner[0], "return "), Edit(inner[1], end, "")]
            statement = updates.statements[updates.calls.index(call)]
            lines = self.pieces.take([statement], [*edits, *cut], indent)
            return lines, used(pairs, without)

        always = [s for s in updates.later if s not in updates.statements]
        statements = [*self.before, *graph.statements]
        how: Any = {"edits": edits, "without": without | self.kept(always), "always": always}
        lines, more = self.written(statements, write, **how)
        if not first and _UNCHANGED.fullmatch(lines):
            return "", set()
        own = set().union(*(scopes.bound([s]) for s in always))
        return self.with_built(first + lines, names | more, own)

    def _is_all(self, node: Any) -> bool:
        """Whether an expression is all trainable variables."""
        statement = self.graph.assignment(getattr(node, "id", ""))
        made = statement.value if statement is not None else node
        is_call = self.graph.called(made) == _VARIABLES if made is not None else False
        return node is None or literals.is_none(node) or (is_call and not made.args)

    def _refuse_places(self) -> None:
        """Refuses numbers of places in lists: pairs have no variables without gradient."""
        for statement in self.updates.later:
            for node in ast.walk(statement) if statement not in self.updates.statements else ():
                is_list = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
                is_own = is_list and node.value.id in self._lists()  # type: ignore[attr-defined]
                if is_own and literals.value(node.slice) is not None:  # type: ignore[attr-defined]
                    self.graph.refuse(node, "it takes a gradient by its number")

    def _lists(self) -> set[str]:
        return {
            target.id
            for s in self.updates.flatly
            if isinstance(s, ast.Assign)
            and (self.updates.made in ast.walk(s) or self.graph.called(s.value) == _VARIABLES)
            for target in s.targets
            if isinstance(target, ast.Name)
        }

    def _chosen(self, node: Any) -> tuple[str, set[str]]:
        """Returns the lines that choose the pairs of some variables."""
        flatly = [*self.before, *self.updates.flatly]
        without = self.kept([])
        found, names = self.pieces.needed(used(node), flatly, without)
        lines = self.pieces.take(found, [], INDENT)
        lines += f"{INDENT}pairs = {_CHOSEN.format(self.program.expression(node))}\n"
        if isinstance(node, ast.Name):  # In the same order, without those that have no gradient.
            lines += f"{INDENT}{node.id} = {_ALL}\n"
        return lines, names

    def _replaced(self, chosen: Any) -> tuple[list[Edit], set[Any]]:
        """Returns the edits that give the pairs, and what they replace or stands before them."""
        made = self.updates.made
        nodes: set[Any] = set()
        if made is None:
            return [], set()
        is_pairs = last(made) == "compute_gradients"
        text = "pairs" if is_pairs else "[gradient for gradient, _ in pairs]"
        edits, inside = [Edit(*self.program.span(made), text)], {*ast.walk(made)}
        same = self.pieces.text(chosen) if chosen is not None else ""
        for statement in self.updates.flatly:
            for node in ast.walk(statement):
                is_all = isinstance(node, ast.Call) and self.graph.called(node) == _VARIABLES
                is_same = isinstance(node, ast.expr) and same and self.pieces.text(node) == same
                if isinstance(chosen, ast.Name):
                    is_all = is_same = False
                    if isinstance(statement, ast.Assign) and chosen.id in scopes.bound([statement]):
                        nodes.add(statement)
                if node not in inside and (is_same if same else is_all):
                    edits.append(Edit(*self.program.span(node), _ALL))
                    nodes.add(node)
        return edits, {made, *nodes}

    def kept(self, always: list[Any]) -> set[Any]:
        """Returns the statements that stay in `loss`: what they make is taken from there."""
        graph, flatly = self.graph, self.updates.flatly
        found = {s for s in flatly if scopes.bound([s]) & graph.tensors}
        found -= {s for s in found if isinstance(s, ast.If) and self.updates.follows(s)}
        found |= {s for s in self.before if isinstance(s, ast.Assign) and graph.kinds.builds(s)}
        return {s for s in found if s not in always and not self._is_again(s)}

    def _is_again(self, statement: Any) -> bool:
        """Whether a statement of the graph can run once more, outside of `loss`."""
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        own = {last(call) for call in calls} & self.graph.kinds.own
        methods = [c for c in calls if isinstance(c.func, ast.Attribute)]
        names = {self.graph.called(c) or last(c) for c in methods}
        is_known = all(name in _AGAIN for name in names)
        return isinstance(statement, ast.Assign) and is_known and not own

    def with_built(self, lines: str, names: set[str], own: set[str]) -> tuple[str, set[str]]:
        """Returns the lines of a method after one that takes what `loss` has made."""
        made = {name for s in self.kept([]) for name in scopes.bound([s])}
        made |= set(self.graph.placeholders)
        found = sorted(names & made & set(re.findall(r"\w+", lines)) - own)
        self.built += [name for name in found if name not in self.built]
        values = ", ".join(f'self.built["{name}"]' for name in found)
        first = f"{INDENT}{', '.join(found)} = {values}\n" if found else ""
        return first + lines, names - {*found}

    def stepped(self, lines: str) -> str:
        """Returns the lines of a method that is given the step."""
        name = self.graph.step_name
        if name and re.search(rf"(?m)^ *{name} = ", lines):
            statement = self.graph.assignment(name)
            self.graph.refuse(statement or self.graph.block, f"its {name} does not begin at 0")
        is_read = name != "step" and name in re.findall(r"\w+", lines)
        return f"{INDENT}{name} = step\n{lines}" if is_read else lines
