"""What a program feeds while it trains, and how long it does."""

from __future__ import annotations

import ast
import re
from typing import Any, Iterable

from compat.scripts.migrating.experiment.flags import Flags
from compat.scripts.migrating.experiment.model import Model
from compat.scripts.migrating.steps import conditions
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import INPUT, last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.source import literals, scopes

_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_BODIES = ("body", "orelse", "finalbody")
# Calls that give the same each time, besides those of NumPy and the program's own functions.
_SAME = (
    "astype copy dot flatten float int len list max mean min range ravel repeat reshape squeeze "
    "sum toarray tolist transpose tuple"
)


class Feeding:
    """The first call that trains, what it feeds, and the loops around it.

    Attributes:
      call: this call.
      feed: what it feeds, by placeholder.
      others: what calls that do not train feed, where that is known, with the calls.
      loops: those that it is in, from the outermost on.
      inside: the names that these bind.
      local: the statements in the loops that come before the call in each turn.
      outside: those in front of the loops that neither build the graph nor run it.
    """

    def __init__(self, graph: Graph, model: Model, flags: Flags) -> None:
        self.graph, self.flags = graph, flags
        self.program = graph.program
        self._functions = {f.name: f for f in self.program.nodes(ast.FunctionDef)}
        updates = model.updates.names
        inside = {n for s in graph.statements for n in ast.walk(s)}
        runs = [c for c in self.program.nodes(ast.Call) if last(c) == "run" and c not in inside]
        training = [call for call in runs if call.args and used(call.args[0]) & updates]
        if not training:
            graph.refuse(graph.block, "no call of its session names what trains")
        training = [c for c in training if c.args[1:] or c.keywords] or training  # No tokens.
        for call in self.program.nodes(ast.Call):
            if graph.called(call) and (last(call) in INPUT or last(call).endswith("Queue")):
                graph.refuse(call, "its batches come from queues of input")
            if last(call) in ("make_initializable_iterator", "from_structure"):
                graph.refuse(call, "its session initializes an iterator")
            if last(call) == "make_one_shot_iterator" and ".repeat(" not in self.program.text:
                graph.refuse(call, "its data set ends; call repeat() on it")
        self.call = training[0]
        feed = self._feed_of(self.call)
        if feed is None:
            graph.refuse(self.call, "its batches are fed by a function")
        self.feed = feed or {}
        fed = [(call, self._feed_of(call)) for call in runs if call not in training]
        self.others = [(call, found) for call, found in fed if found]
        around = self._around(self.call)
        self.loops = [s for s in around if isinstance(s, (ast.For, ast.While))]
        self.inside = scopes.bound(self.loops) - set(flags.holders)
        self.local = _before(around[around.index(self.loops[0]) :]) if self.loops else []
        made = [*graph.statements, *self.local]
        self.outside = [s for s in self._front(self.call) if s not in made and not graph.runs(s)]

    def _feed_of(self, call: Any) -> dict[str, Any] | None:
        """Returns the values that a call feeds by placeholder; None if that is not known."""
        found = [*call.args[1:2], *(w.value for w in call.keywords if w.arg == "feed_dict")]
        feed = found[0] if found else None
        more: list[Any] = []
        if isinstance(feed, ast.Name):
            more = [s for s in self._in_front(call) if feed.id in used(s)]
            feed = self.given(feed, call)
        if feed is None or literals.is_none(feed):
            return {}
        if not isinstance(feed, ast.Dict):
            return None
        pairs = [*zip(feed.keys, feed.values)]
        for statement in more:  # Such as `feed[keep_prob] = 0.5`.
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Subscript):
                pairs.append((getattr(target.slice, "value", target.slice), statement.value))
            elif not self.graph.runs(statement):
                return None
        return {getattr(key, "id", ""): value for key, value in pairs}

    def given(self, value: Any, call: Any = None) -> Any:
        """Returns what a variable was assigned before a call, the one that trains, or itself."""
        call = self.call if call is None else call
        for statement in reversed(self._in_front(call)):
            if isinstance(value, ast.Name) and value.id in scopes.bound([statement]):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                is_plain = isinstance(target, ast.Name)
                return self.given(statement.value, call) if is_plain else value
        return value

    def _in_front(self, call: Any) -> list[Any]:
        """Returns the statements of its function before a call, if flags have their defaults."""
        return conditions.decided(self._front(call), self.flags.switches())

    def _front(self, call: Any) -> list[Any]:
        around = self._around(call)
        body = getattr(self.program.parents[around[0]], "body", [])
        front = [*body[: body.index(around[0])], *_before(around)]
        block = self.graph.block
        return [s for t in front for s in (block.body if block in ast.walk(t) else [t])]

    def _around(self, node: Any) -> list[Any]:
        """Returns the statements that a call is in, from the outermost on."""
        found: list[Any] = []
        while node is not self.graph.scope and not isinstance(node, ast.Module):
            if isinstance(node, ast.stmt):
                found.insert(0, node)
            node = self.program.parents[node]
        return found

    def is_drawn(self, nodes: Iterable[Any]) -> bool:
        """Whether random numbers are drawn, also by functions of the program that are called."""
        todo, seen = [*nodes], {""}
        while todo:
            node = todo.pop()
            if re.search(r"\brandom\b", self.program.text[slice(*self.program.span(node))]):
                return True
            called = {last(n) for n in ast.walk(node) if isinstance(n, ast.Call)} - seen
            todo += [self._functions[name] for name in called if name in self._functions]
            seen |= called
        return False

    def varies(self, value: Any) -> bool:
        """Whether an expression may have another value each time, whatever its names are."""
        calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
        roots = {call: literals.dotted(call.func).partition(".")[0] for call in calls}
        same = {*_SAME.split(), *self._functions}
        others = [c for c in calls if roots[c] not in ("np", "numpy") and last(c) not in same]
        return bool(others) or self.is_drawn([value])

    def loop_of(self, statement: Any) -> Any:
        """Returns the innermost of the loops that a statement is in."""
        return [loop for loop in self.loops if statement in ast.walk(loop)][-1]

    def counters(self) -> set[str]:
        """Returns the names that count the updates from 0 on, such as `step` in `step += 1`."""
        nodes = [node for loop in self.loops for node in ast.walk(loop)]
        found: set[str] = set()
        for node in nodes:
            is_one = isinstance(node, ast.AugAssign) and literals.value(node.value) == 1
            is_step = isinstance(node, ast.Assign) and self.graph.runs(node)
            found |= scopes.bound([node]) if is_one or is_step else set()
        zero = [
            n for n in self.outside if isinstance(n, ast.Assign) and literals.value(n.value) == 0
        ]
        return found & scopes.bound(zero) - scopes.bound(self.local)

    def length(self) -> dict[str, str]:
        """Returns how long the program trains, as a setting, or nothing if that is not known."""
        for call in self.program.nodes(ast.Call):
            if last(call) == "StopAtStepHook":
                words = [w.value for w in call.keywords if w.arg in ("last_step", "num_steps")]
                return self._number("max_steps", [*call.args, *words][:1])
        outer = self.loops[0] if self.loops else None
        if isinstance(outer, ast.For) and is_range(outer):
            given: Any = outer.iter.args  # type: ignore[attr-defined]
            ends = [self._whole(word) for word in given[:2]]
            number = -1 if None in ends or len(given) > 2 else ends[-1] - sum(ends[:-1])
            name = "epochs" if len(self.loops) > 1 else "max_steps"
            return {name: str(number)} if number > 0 else {}
        for node in ast.walk(outer) if outer is not None else ():
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], _BOUNDS):
                side, found = node.left, self._number("max_steps", node.comparators)
                if found and isinstance(side, ast.BinOp):  # Such as `step * batch_size < rows`.
                    rows = [self._whole(n) for n in (side.left, side.right)]
                    if not isinstance(side.op, ast.Mult) or rows.count(None) != 1:
                        continue
                    size = sum(number for number in rows if number) or 1
                    found = {"max_steps": str(max(1, int(found["max_steps"]) // size))}
                if found:
                    return found
        return {}

    def _whole(self, node: ast.AST) -> Any:
        """Returns the whole number that an expression is, such as `steps + 1`, or None."""
        text = self.constant(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self._whole(node.left), self._whole(node.right)
            sign = 1 if isinstance(node.op, ast.Add) else -1
            return None if left is None or right is None else left + sign * right
        return int(text) if text.isdigit() else None

    def _number(self, name: str, nodes: Any) -> dict[str, str]:
        text = self.constant(nodes[0]) if nodes else ""
        return {name: text} if text.isdigit() and int(text) > 0 else {}

    def constant(self, node: ast.AST) -> str:
        """Returns the number that an expression is, by a flag's default or an assignment, or ""."""
        if literals.value(node) is not None:
            return self.program.expression(node)
        flag = self.flags.read(node)
        if flag:
            return self.flags.by_name[flag].default
        name = node.id if isinstance(node, ast.Name) else ""
        statements = self.program.nodes(ast.Assign)
        assigned = [n for n in statements if name in scopes.bound(n.targets)]
        counting = [n.target for n in self.program.nodes(ast.AugAssign, ast.For)]
        if len(assigned) != 1 or name in scopes.bound(counting):
            return ""
        value, target = assigned[0].value, assigned[0].targets[0]
        if isinstance(target, ast.Tuple):  # Such as `epochs, size = 20, 50`.
            pairs = zip(target.elts, getattr(value, "elts", []))
            value = next((v for t, v in pairs if getattr(t, "id", "") == name), None)
        return self.constant(value) if value is not None else ""


def is_range(loop: Any) -> bool:
    """Whether a loop is over a range of numbers."""
    call = getattr(loop, "iter", None)
    return isinstance(call, ast.Call) and last(call) in ("range", "xrange")


def _before(around: list[Any]) -> list[Any]:
    """Returns the statements that come before the last one in the bodies of those around it."""
    found: list[Any] = []
    for outer, inner in zip(around, around[1:]):
        body = next(b for b in (getattr(outer, n, []) for n in _BODIES) if inner in b)
        found += body[: body.index(inner)]
    return found


class Loops:
    """The loops around the call that trains, with the statements that make a batch.

    Attributes:
      lines: these, up to where a batch is there.
      indent: of what follows them.
      wanted: the names that they need.
    """

    def __init__(
        self, feeding: Feeding, pieces: Pieces, values: set[str], settings: dict[str, str]
    ) -> None:
        """Takes them out of the program, or raises `UserError`.

        How long it trains is in `settings`; `epochs` changes where each has other batches.
        """
        self._feeding, self._pieces = feeding, pieces
        self._inner, self.wanted = pieces.needed(values, feeding.local)
        for statement in self._inner:
            if feeding.graph.runs(statement):
                feeding.graph.refuse(statement, "what it feeds is computed by its session")
        headers = self._headers(settings)
        for name in sorted(self.wanted & self._changing(headers)):
            feeding.graph.refuse(feeding.call, f"what it feeds depends on {name}, see its loop")
        self.lines, self.indent = "", " " * 8
        for loop in feeding.loops:
            if loop in headers:
                self.lines += f"{self.indent}{headers[loop][0]}\n"
                self.indent += "    "
                self.wanted |= used(loop.iter) if isinstance(loop, ast.For) else set()
            own = [s for s in self._inner if feeding.loop_of(s) is loop]
            self.lines += pieces.take(own, [], self.indent)

    def _headers(self, settings: dict[str, str]) -> dict[Any, tuple[str, set[str]]]:
        """Returns the lines of those loops that make different batches, and what these bind."""
        loops, found = self._feeding.loops, {}
        # Each epoch has batches of its own.
        is_random = self._feeding.is_drawn([*self._inner, self._feeding.call])
        for loop in loops:
            target: Any = getattr(loop, "target", None)
            names = scopes.bound([target]) if target is not None else set()
            if "max_steps" in settings and (len(loops) == 1 or isinstance(loops[-1], ast.While)):
                counter = min(self.wanted & (names | self._feeding.counters()), default="_")
                if loop is loops[-1]:
                    found[loop] = f"for {counter} in range(self.settings.max_steps):", {counter}
            elif isinstance(loop, ast.For) and (
                loop is loops[-1] or is_random or names & self.wanted
            ):
                text = self._pieces.text
                found[loop] = f"for {text(target)} in {text(loop.iter)}:", names
                if loop is not loops[-1] or len(loops) == 1:
                    settings["epochs"] = "1"
        if not found:
            self._feeding.graph.refuse(self._feeding.call, "how many batches it makes is not known")
        return found

    def _changing(self, headers: dict[Any, tuple[str, set[str]]]) -> set[str]:
        """Returns the names that the loops also bind in other statements than those taken."""
        loops = self._feeding.loops
        targets = [loop.target for loop in headers if isinstance(loop, ast.For)]
        last_ones = [s for s in self._inner if self._feeding.loop_of(s) is loops[-1]]
        fresh = [s for s in last_ones if isinstance(s, ast.Assign) and not _uses_itself(s)]
        known = scopes.bound(fresh).union(*(names for _, names in headers.values()))
        return scopes.bound(loops, without=[*self._inner, *targets]) - known


def _uses_itself(statement: ast.Assign) -> bool:
    return bool(used(statement) & scopes.bound([statement]))
