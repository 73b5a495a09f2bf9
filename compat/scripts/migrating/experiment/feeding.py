"""What a program feeds while it trains, as the data of an experiment."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from compat.scripts.migrating.experiment.flags import Flags
from compat.scripts.migrating.experiment.model import Model
from compat.scripts.migrating.experiment.pieces import Pieces, used
from compat.scripts.migrating.steps import scopes
from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.kinds import INPUT, last
from compat.scripts.source import literals

_READERS = ("read_data_sets", "load_mnist")


class Fed(NamedTuple):
    """The data of an experiment.

    Attributes:
      lines: of `data`.
      names: that these need.
      inputs: what each placeholder is in `loss`, as text.
      settings: defaults of settings that every experiment has, as text.
    """

    lines: str
    names: set[str]
    inputs: dict[str, str]
    settings: dict[str, str]


class Feeding:
    """Finds the calls that train, what they feed, and the loops around them."""

    def __init__(self, graph: Graph, model: Model, pieces: Pieces, flags: Flags) -> None:
        self.graph, self.pieces, self.flags = graph, pieces, flags
        self.program, self.parents = graph.program, model.parents
        updates = scopes.bound([model.trained.statement])
        inside = {n for s in graph.statements for n in ast.walk(s)}
        runs = [c for c in self.program.nodes(ast.Call) if last(c) == "run" and c not in inside]
        self.calls = [c for c in runs if c.args and used(c.args[0]) & updates]
        if not self.calls:
            graph.refuse(graph.block, "no call of its session trains")
        self.others = [call for call in runs if call not in self.calls]
        for call in self.program.nodes(ast.Call):
            if graph.called(call).startswith("train.") and last(call) in INPUT:
                graph.refuse(call, "its batches come from queues of input")
        self.feed = self._feed_of(self.calls[0])
        self.around = self._around(self.calls[0])

    def _feed_of(self, call: Any) -> dict[str, Any]:
        """Returns the values that a call feeds by placeholder."""
        given = [*call.args[1:2], *(w.value for w in call.keywords if w.arg == "feed_dict")]
        feed = given[0] if given else None
        if isinstance(feed, ast.Name):
            assigned = [
                n.value
                for n in self.program.nodes(ast.Assign)
                if n.lineno <= call.lineno and feed.id in scopes.bound(n.targets)
            ]
            feed = assigned[-1] if assigned else feed
        if feed is None or literals.is_none(feed):
            return {}
        if not isinstance(feed, ast.Dict):
            self.graph.refuse(call, "its batches are fed by a function")
        return {getattr(k, "id", ""): v for k, v in zip(feed.keys, feed.values)}  # type: ignore

    def _around(self, node: Any) -> list[Any]:
        """Returns the statements that a call is in, from the outermost on."""
        found: list[Any] = []
        while node is not self.graph.scope and not isinstance(node, ast.Module):
            if isinstance(node, ast.stmt):
                found.insert(0, node)
            node = self.parents[node]
        return found

    def fed(self, before: list[ast.stmt]) -> Fed:
        """Returns the data of an experiment, the same in all tasks.

        Args:
          before: as for `_found`.
        """
        found = self._found(before)
        if not re.search(r"\brandom\b", found.lines):
            return found
        seeded = "        np.random.seed(self.settings.seed)  # The same data in all tasks.\n"
        return found._replace(lines=seeded + found.lines, names=found.names | {"np"})

    def _found(self, before: list[ast.stmt]) -> Fed:
        """Returns the data of an experiment.

        Args:
          before: the statements in front of the block in its function.
        """
        loops = [s for s in self.around if isinstance(s, (ast.For, ast.While))]
        local = self._local(loops)
        readers = [s for s in local if _last_of(s) == "next_batch"]
        length = self._length(loops)
        if not self.feed:
            return self._without(length)
        if readers:
            return self._of_reader(readers[-1], loops, length, before)
        pairs = loops[-1] if loops and isinstance(loops[-1], ast.For) else None
        if pairs is not None and _last_of(pairs, "iter") == "zip":
            return self._of_pairs(pairs, length, before)
        return self._of_loop(local, length, before)

    def _local(self, loops: list[Any]) -> list[ast.stmt]:
        """Returns the statements in the loops that come before the call in each turn."""
        found: list[ast.stmt] = []
        if not loops:
            return found
        start = self.around.index(loops[0])
        for outer, inner in zip(self.around[start:], self.around[start + 1 :]):
            body = next(
                b
                for b in (getattr(outer, n, []) for n in ("body", "orelse", "finalbody"))
                if inner in b
            )
            found += body[: body.index(inner)]
        return found

    def _length(self, loops: list[Any]) -> dict[str, str]:
        """Returns how long the program trains, as a setting, or nothing if that is not known."""
        for call in self.program.nodes(ast.Call):
            if last(call) == "StopAtStepHook":
                words = [w.value for w in call.keywords if w.arg in ("last_step", "num_steps")]
                return self._number("max_steps", [*call.args, *words][:1])
        outer = loops[0] if loops else None
        if isinstance(outer, ast.For) and _last_of(outer, "iter") in ("range", "xrange"):
            end = outer.iter.args[-1:]  # type: ignore[attr-defined]
            return self._number("epochs" if len(loops) > 1 else "max_steps", end)
        for node in ast.walk(outer) if outer is not None else ():
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], _BOUNDS):
                found = self._number("max_steps", node.comparators)
                if found:
                    return found
        return {}

    def _number(self, name: str, nodes: Any) -> dict[str, str]:
        text = self.constant(nodes[0]) if nodes else ""
        return {name: text} if text.isdigit() and int(text) > 0 else {}

    def constant(self, node: ast.AST) -> str:
        """Returns the number that an expression is, by a flag's default or an assignment, or ""."""
        if literals.value(node) is not None:
            return self.program.expression(node)
        flag = self.flags.read(node)
        if flag:
            self.flags.by_name.setdefault(flag, self.flags.by_name[flag])
            return self.flags.by_name[flag].default
        assigned = [
            n.value
            for n in self.program.nodes(ast.Assign)
            if isinstance(node, ast.Name) and node.id in scopes.bound(n.targets)
        ]
        return self.constant(assigned[0]) if len(assigned) == 1 else ""

    def _input(self, name: str, text: str, known: str = "") -> str:
        """Returns the placeholder of a name, which is given the batch by default."""
        call: Any = self.graph.placeholders[name].statement.value
        given = dict(zip(("dtype", "shape", "name"), call.args))
        given.update((word.arg, word.value) for word in call.keywords)
        shape = self.program.expression(given["shape"]) if "shape" in given else known
        shape = shape or f"{text}.shape"
        named = f", name={self.program.expression(given['name'])}" if "name" in given else ""
        return f"{self.graph.tf}.placeholder_with_default({text}, {shape}{named})"

    def _without(self, length: dict[str, str]) -> Fed:
        """Nothing is fed: an example is a number, and counts the updates."""
        lines = "        # An example for each update: nothing is fed.\n"
        lines += '        return {"train": {"update": np.arange(self.settings.max_steps)}}\n'
        settings = {"max_steps": "1000", **length, "batch_size": "1"}
        return Fed(lines, {"np"}, {}, settings)

    def _of_reader(
        self, statement: Any, loops: list[Any], length: dict[str, str], before: list[ast.stmt]
    ) -> Fed:
        """Batches are from the reader of the MNIST tutorials, which has all of its arrays."""
        call, names = statement.value, getattr(statement.targets[0], "elts", [])
        batch = [getattr(name, "id", "") for name in names]
        part = literals.dotted(call.func.value)
        reader, _, split = part.rpartition(".")
        if len(batch) != 2 or split != "train":
            self.graph.refuse(statement, "its batches are not those of a reader's training set")
        inputs, arrays = {}, {}
        for name, value in self.feed.items():
            chosen = getattr(value, "id", "")
            if chosen in batch:
                arrays[name] = ("images", "labels")[batch.index(chosen)]
                inputs[name] = self._input(name, f'batch["{name}"]')
            else:
                inputs[name] = self._switched(name, value, loops)
        places = [self.pieces.lines(statement)]
        self.pieces.moved += places
        found, wanted = self.pieces.needed({reader}, before)
        lines = self.pieces.take(found, [], " " * 8)
        entries = {name: self._as_fed(name, f"part.{kind}") for name, kind in arrays.items()}
        lines += f"\n        def arrays(part):\n            return {_dict(entries, ' ' * 12)}\n\n"
        splits = {key: f"arrays({reader}.{key})" for key in ("train", "validation", "test")}
        lines += f"        return {_dict(splits, ' ' * 8)}\n"
        size = self.constant(call.args[0]) if call.args else ""
        settings = dict(length, **({"batch_size": size} if size.isdigit() else {}))
        return Fed(lines, wanted | {"np"}, inputs, settings)

    def _switched(self, name: str, value: Any, loops: list[Any]) -> str:
        """Returns a fed number, such as the rate of dropout, and what it is in an evaluation."""
        if used(value) & {n for loop in loops for n in scopes.bound([loop])} - self._numbers():
            self.graph.refuse(value, f"what it feeds to {name} depends on its loop")
        text = other = self.program.expression(value)
        for call in self.others:
            feeds = [n for n in ast.walk(call) if isinstance(n, ast.Dict)]
            for feed in feeds:
                for key, found in zip(feed.keys, feed.values):
                    if getattr(key, "id", "") == name:
                        other = self.program.expression(found)
        made = text if text == other else f"{text} if training else {other}"
        dtype = self.graph.placeholders[name].statement.value.args[:1]  # type: ignore[attr-defined]
        kind = self.program.expression(dtype[0]) if dtype else f"{self.graph.tf}.float32"
        return self._input(name, f"{self.graph.tf}.constant({made}, {kind})", "[]")

    def _numbers(self) -> set[str]:
        return set(self.flags.holders)

    def _of_pairs(self, loop: Any, length: dict[str, str], before: list[ast.stmt]) -> Fed:
        """`for x, y in zip(xs, ys)`: an element of each is fed at a time."""
        targets = [getattr(t, "id", "") for t in getattr(loop.target, "elts", [])]
        arrays, inputs = {}, {}
        for name, value in self.feed.items():
            chosen = getattr(value, "id", "")
            if chosen not in targets:
                self.graph.refuse(value, f"what it feeds to {name} is no element of its arrays")
            arrays[name] = loop.iter.args[targets.index(chosen)]
            inputs[name] = self._input(name, f'batch["{name}"][0]')
        found, wanted = self.pieces.needed(set().union(*map(used, arrays.values())), before)
        lines = self.pieces.take(found, [], " " * 8)
        words = {n: self._as_fed(n, self.program.expression(v)) for n, v in arrays.items()}
        lines += f"        train = {_dict(words, ' ' * 8)}\n"
        lines += '        return {"train": train}\n'
        return Fed(lines, wanted | {"np"}, inputs, {**length, "batch_size": "1"})

    def _as_fed(self, name: str, text: str) -> str:
        call: Any = self.graph.placeholders[name].statement.value
        dtype = self.program.expression(call.args[0]) if call.args else ""
        kind = dtype.rpartition(".")[2].strip("\"'").replace("float", "float32")
        kind = kind.replace("float3232", "float32").replace("float3264", "float64")
        return f'np.asarray({text}, "{kind}")' if kind else text

    def _of_loop(
        self, local: list[ast.stmt], length: dict[str, str], before: list[ast.stmt]
    ) -> Fed:
        """The loop makes its batches: they are made before, one for each update."""
        if "max_steps" not in length:
            self.graph.refuse(self.calls[0], "how many batches it makes is not known")
        values = set().union(*map(used, self.feed.values()))
        inner, wanted = self.pieces.needed(values, local)
        outer, wanted = self.pieces.needed(wanted, before)
        lines = self.pieces.take(outer, [], " " * 8)
        lines += "        batches = []\n        for _ in range(self.settings.max_steps):\n"
        lines += self.pieces.take(inner, [], " " * 12)
        words = {n: self._as_fed(n, self.program.expression(v)) for n, v in self.feed.items()}
        lines += f"            made = {_dict(words, ' ' * 12)}\n            batches.append(made)\n"
        stacked = "{name: np.stack([made[name] for made in batches]) for name in batches[0]}"
        lines += f"        # An example is a batch.\n        train = {stacked}\n"
        lines += '        return {"train": train}\n'
        inputs = {name: self._input(name, f'batch["{name}"][0]') for name in self.feed}
        return Fed(lines, wanted | {"np"}, inputs, {**length, "batch_size": "1"})


_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _dict(entries: dict[str, str], indent: str) -> str:
    """Returns the text of a dictionary, a line for each entry."""
    lines = [f'{indent}    "{name}": {value},\n' for name, value in entries.items()]
    return "{\n" + "".join(lines) + indent + "}"


def _last_of(statement: Any, name: str = "value") -> str:
    call = getattr(statement, name, None)
    return last(call) if isinstance(call, ast.Call) else ""
