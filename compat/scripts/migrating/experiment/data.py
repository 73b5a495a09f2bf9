"""What a program feeds, as the data of an experiment."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from compat.scripts.migrating.experiment.feeding import Feeding, Loops
from compat.scripts.migrating.steps.kinds import last
from compat.scripts.migrating.steps.pieces import Pieces, changed, used
from compat.scripts.source import literals, scopes

_INDENT = " " * 8
_READERS = ("read_data_sets", "load_mnist")


class Fed(NamedTuple):
    """The data of an experiment."""

    lines: str  # Of `data`.
    names: set[str]  # That these need.
    inputs: dict[str, str]  # What each placeholder is in `loss`, as text.
    settings: dict[str, str]  # Defaults of settings that every experiment has, as text.


class Data:
    """Writes the data of an experiment.

    Attributes:
      numbers: what the placeholders are that are fed a number, as text.
    """

    def __init__(self, feeding: Feeding, pieces: Pieces, before: list[ast.stmt]) -> None:
        self.feeding, self.pieces = feeding, pieces
        self.graph, self.program = feeding.graph, feeding.program
        self.before = before
        self.length = feeding.length()
        self.numbers: dict[str, str] = {}
        self.defaults: dict[str, str] = {}  # The same of those with a default.

    def fed(self) -> Fed:
        """Returns the data of an experiment, the same in all tasks."""
        for name in self.feeding.feed:
            made: Any = getattr(self.graph.assignment(name), "value", None)
            is_default = _called(made) == "placeholder_with_default" and bool(made.args)
            if name not in self.graph.placeholders and not is_default:
                self.graph.refuse(self.feeding.call, f"it feeds {name or 'what has no name'}")
        found = self._found()
        parts = [s for s in self.program.tree.body if getattr(s, "name", "") in found.names]
        if not re.search(r"\brandom\b", found.lines + "".join(map(self.pieces.text, parts))):
            return found
        seeded = f"{_INDENT}np.random.seed(self.settings.seed)  # The same data in all tasks.\n"
        return found._replace(lines=seeded + found.lines, names=found.names | {"np"})

    def _found(self) -> Fed:
        feeding = self.feeding
        readers = [s for s in feeding.local if self._reads(s)]
        if not feeding.feed:
            return self._without()
        found = self._of_reader(readers[-1]) if readers else None
        if found is not None:
            return found
        inner = feeding.loops[-1] if feeding.loops else None
        if isinstance(inner, ast.For) and _called(inner.iter) == "zip":
            return self._of_pairs(inner)
        arrays = self._arrays()
        if not arrays:
            self.graph.refuse(feeding.call, "it feeds numbers alone")
        if not any(used(value) & feeding.inside for value in arrays.values()) and not any(
            map(feeding.varies, arrays.values())
        ):
            return self._of_all(arrays)
        return self._of_slices(arrays) or self._of_loops(arrays)

    def _arrays(self) -> dict[str, Any]:
        """Returns what is fed but numbers, by placeholder."""
        found: dict[str, Any] = {}
        for name, value in self.feeding.feed.items():
            given = self.feeding.given(value)
            is_fixed = not used(given) & self.feeding.inside
            if is_fixed and (self.feeding.constant(given) or self.feeding.flags.read(given)):
                self._number(name, value)
            elif name in self.graph.placeholders:
                found[name] = value
            else:
                self.graph.refuse(self.feeding.call, f"what it feeds to {name} is not a number")
        return found

    def _input(self, name: str, text: str) -> str:
        """Returns the placeholder of a name, which is given the batch by default."""
        call: Any = self.graph.placeholders[name].statement.value
        given = dict(zip(("dtype", "shape", "name"), call.args))
        given.update((word.arg, word.value) for word in call.keywords)
        shape = self.program.expression(given["shape"]) if "shape" in given else ""
        shape = shape or ("[]" if name in self.numbers else f"{text}.shape")
        named = f", name={self.program.expression(given['name'])}" if "name" in given else ""
        return f"{self.graph.tf}.placeholder_with_default({text}, {shape}{named})"

    def _inputs(self, arrays: dict[str, Any], element: str = "") -> dict[str, str]:
        found = {name: self._input(name, f'batch["{name}"]{element}') for name in arrays}
        found.update((name, self._input(name, text)) for name, text in self.numbers.items())
        found.update(self.defaults)
        return {name: found[name] for name in self.feeding.feed if name in found}

    def _number(self, name: str, value: Any) -> None:
        """Notes a fed number, such as the rate of dropout, and what it is in an evaluation."""
        given = [self.feeding.given(value)]
        for call, feed in self.feeding.others:
            if name in feed:
                given.append(self.feeding.given(feed[name], call))
        if any(used(found) & self.feeding.inside for found in given):
            self.graph.refuse(self.feeding.call, f"what it feeds to {name} depends on its loop")
        made_by = self.graph.assignment(name)
        default: Any = made_by.value.args[:1] if name not in self.graph.placeholders else []
        given += default if len(given) == 1 else []
        text, other = (self.program.expression(found) for found in (given[0], given[-1]))
        made = text if text == other else f"{text} if training else {other}"
        if default:
            call = self.pieces.text(made_by.value)
            start = self.program.span(made_by.value)[0]
            first, last = (place - start for place in self.program.span(default[0]))
            self.defaults[name] = f"{call[:first]}{made}{call[last:]}"
            return
        node: Any = self.graph.placeholders[name].statement.value
        dtype = [*node.args[:1], *(w.value for w in node.keywords if w.arg == "dtype")]
        kind = self.program.expression(dtype[0]) if dtype else f"{self.graph.tf}.float32"
        self.numbers[name] = f"{self.graph.tf}.constant({made}, {kind})"

    def _without(self) -> Fed:
        """Nothing is fed: an example is a number, and counts the updates."""
        lines = f"{_INDENT}# An example for each update: nothing is fed.\n"
        lines += f'{_INDENT}return {{"train": {{"update": np.arange(self.settings.max_steps)}}}}\n'
        return Fed(lines, {"np"}, {}, {"max_steps": "1000", **self.length, "batch_size": "1"})

    def _reads(self, statement: Any) -> bool:
        """Whether a statement takes a batch of the reader of the tutorials."""
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call) or last(call) != "next_batch":
            return False
        reader = literals.dotted(call.func).partition(".")[0]
        made = [
            node.value
            for node in self.program.nodes(ast.Assign)
            if reader in scopes.bound(node.targets) and isinstance(node.value, ast.Call)
        ]
        return any(last(value) in _READERS for value in made)

    def _of_reader(self, statement: Any) -> Fed | None:
        """Batches are from the reader of the MNIST tutorials, which has all of its arrays.

        Returns None if they are others, or something else than their shape is changed.
        """
        call, target = statement.value, statement.targets[0]
        batch = [getattr(name, "id", "") for name in getattr(target, "elts", [])]
        if isinstance(target, ast.Name):  # `batch = ...`, and `batch[0]` is fed.
            batch = [f"{target.id}[0]", f"{target.id}[1]"]
        reader, _, split = literals.dotted(call.func.value).rpartition(".")
        size = self.feeding.constant(call.args[0]) if call.args else ""
        local = self.feeding.local
        later = local[local.index(statement) + 1 :]
        names = scopes.bound([target])
        changing = [s for s in later if changed(s) & names]
        if len(batch) != 2 or split != "train":
            return None
        arrays, wanted = {}, {reader}
        for name, value in self.feeding.feed.items():
            given = self.feeding.given(value)
            changing = [s for s in changing if getattr(s, "value", None) is not given]
            base, shape = self._shaped(given, size)
            chosen = self.program.expression(base) if used(base) & names else ""
            if chosen in batch:
                arrays[name] = ("images", "labels")[batch.index(chosen)] + shape
                wanted |= used(given) - names
            elif chosen or used(given) & self.feeding.inside:
                return None
            else:
                self._number(name, value)
        if changing:
            return None
        shaped = [self.feeding.given(value) for value in self.feeding.feed.values()]
        made = [s for s in later if getattr(s, "value", None) in shaped]
        self.pieces.moved += [self.pieces.lines(s) for s in [statement, *made]]
        found, wanted = self.pieces.needed(wanted, self.before)
        lines = self.pieces.take(found, [], _INDENT)
        entries = {name: self._as_fed(name, f"part.{kind}") for name, kind in arrays.items()}
        lines += f"\n        def arrays(part):\n            return {_dict(entries, ' ' * 12)}\n\n"
        made = [s.value for s in self.program.nodes(ast.Assign) if reader in scopes.bound([s])]
        words = [word for call in made for word in getattr(call, "keywords", [])]
        none = any(w.arg == "validation_size" and literals.value(w.value) == 0 for w in words)
        keys = ("train", "test") if none else ("train", "validation", "test")
        splits = {key: f"arrays({reader}.{key})" for key in keys}
        lines += f"        return {_dict(splits, _INDENT)}\n"
        settings = dict(self.length, **({"batch_size": size} if size.isdigit() else {}))
        return Fed(lines, wanted | {"np"}, self._inputs(arrays), settings)

    def _shaped(self, node: Any, size: str) -> tuple[Any, str]:
        """Returns an array of which a batch of a size is made by `reshape`, and that for all rows.

        Of what is no such batch, itself.
        """
        func: Any = getattr(node, "func", None)
        is_reshape = _called(node) == "reshape" and isinstance(func, ast.Attribute)
        is_function = is_reshape and literals.dotted(func.value) in ("np", "numpy")
        words = [*node.args] if is_reshape and not node.keywords else []
        base = words.pop(0) if is_function and words else getattr(func, "value", None)
        sizes = getattr(words[0], "elts", words) if len(words) == 1 else words
        if not sizes or self.feeding.constant(sizes[0]) not in ("-1", size):
            return node, ""
        if any(used(part) & self.feeding.inside for part in sizes):
            return node, ""
        rest = ", ".join(["-1", *map(self.program.expression, sizes[1:])])
        return base, f".reshape({rest})"

    def _of_pairs(self, loop: Any) -> Fed:
        """`for x, y in zip(xs, ys)`: an element of each is fed at a time."""
        targets = [getattr(t, "id", "") for t in getattr(loop.target, "elts", [])]
        arrays = {}
        for name, value in self.feeding.feed.items():
            chosen = getattr(value, "id", "")
            if chosen not in targets:
                self.graph.refuse(value, f"what it feeds to {name} is no element of its arrays")
            arrays[name] = loop.iter.args[targets.index(chosen)]
        return self._whole(arrays, "[0]", {"batch_size": "1"})

    def _of_all(self, arrays: dict[str, Any]) -> Fed:
        """All calls feed the same arrays."""
        return self._whole(arrays, "[0]", {"batch_size": "1"}, "[None]")

    def _whole(
        self, arrays: dict[str, Any], element: str, settings: dict[str, str], index: str = ""
    ) -> Fed:
        """Returns data of these arrays, of which `loss` takes an element of the batch."""
        found, wanted = self.pieces.needed(set().union(*map(used, arrays.values())), self.before)
        lines = self.pieces.take(found, [], _INDENT)
        words = {n: self._as_fed(n, self.program.expression(v)) + index for n, v in arrays.items()}
        train = scopes.free("train", wanted)
        lines += f"        {train} = {_dict(words, _INDENT)}\n"
        lines += f'        return {{"train": {train}}}\n'
        inputs = self._inputs(arrays, element)
        return Fed(lines, wanted | {"np"}, inputs, {**self.length, **settings})

    def _of_slices(self, arrays: dict[str, Any]) -> Fed | None:
        """Batches are successive parts of arrays, such as `xs[i * size:(i + 1) * size]`."""
        given = {name: self.feeding.given(value) for name, value in arrays.items()}
        parts: list[Any] = [v for v in given.values() if isinstance(v, ast.Subscript)]
        bases = {name: part.value for name, part in zip(given, parts)}
        texts = {self.program.text[slice(*self.program.span(p.slice))] for p in parts}
        is_same = len(parts) == len(given) and len(texts) == 1
        if not is_same or any(used(base) & self.feeding.inside for base in bases.values()):
            return None
        size = self._size(getattr(parts[0].slice, "value", parts[0].slice))
        return self._whole(bases, "", {"batch_size": size}) if size else None

    def _size(self, index: Any) -> str:
        """Returns how many rows a slice has, also of a permutation, or ""."""
        index = self.feeding.given(index)
        if isinstance(index, ast.Subscript):
            index = getattr(index.slice, "value", index.slice)
        end = self.feeding.given(index.upper) if isinstance(index, ast.Slice) else None
        if isinstance(end, ast.Call) and last(end) in ("min", "minimum"):
            end = self.feeding.given(end.args[0])
        sides = [end.left, end.right] if isinstance(end, ast.BinOp) else []
        is_step = isinstance(getattr(end, "op", None), (ast.Add, ast.Mult))
        sizes = [self.feeding.constant(side) for side in sides if is_step]
        return next((size for size in sizes if size.isdigit()), "")

    def _as_fed(self, name: str, text: str) -> str:
        call: Any = self.graph.placeholders[name].statement.value
        words = [*call.args[:1], *(w.value for w in call.keywords if w.arg == "dtype")]
        dtype = self.program.expression(words[0]) if words else ""
        kind = dtype.rpartition(".")[2].strip("\"'").replace("float", "float32")
        kind = kind.replace("float3232", "float32").replace("float3264", "float64")
        return f'np.asarray({text}, "{kind}")' if kind else text

    def _of_loops(self, arrays: dict[str, Any]) -> Fed:
        """The loops make batches: they are made before, one for each update."""
        settings = {**self.length, "batch_size": "1"}
        values = set().union(*map(used, arrays.values()))
        loops = Loops(self.feeding, self.pieces, values, settings)
        outer, wanted = self.pieces.needed(loops.wanted, self.before)
        batches, made, train = (scopes.free(n, wanted) for n in ("batches", "made", "train"))
        words = {n: self._as_fed(n, self.program.expression(v)) for n, v in arrays.items()}
        lines = self.pieces.take(outer, [], _INDENT) + f"{_INDENT}{batches} = []\n{loops.lines}"
        lines += f"{loops.indent}{made} = {_dict(words, loops.indent)}\n"
        lines += f"{loops.indent}{batches}.append({made})\n"
        stacked = f"np.stack([{made}[name] for {made} in {batches}]) for name in {batches}[0]"
        lines += f"        # An example is a batch.\n        {train} = {{name: {stacked}}}\n"
        lines += f'        return {{"train": {train}}}\n'
        return Fed(lines, wanted | {"np"}, self._inputs(arrays, "[0]"), settings)


def _called(node: Any) -> str:
    return last(node) if isinstance(node, ast.Call) else ""


def _dict(entries: dict[str, str], indent: str) -> str:
    """Returns the text of a dictionary, a line for each entry."""
    lines = [f'{indent}    "{name}": {value},\n' for name, value in entries.items()]
    return "{\n" + "".join(lines) + indent + "}"
