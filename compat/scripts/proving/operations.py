"""Finds the first operation of a training call whose values differ between two runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compat.scripts.proving import comparison, values
from compat.scripts.proving.runs import Run
from compat.scripts.proving.values import Gap

_RTOL = 1e-4
_ROUNDING = 2e-6  # Relative error of an operation for each element of its inputs that it sums.


@dataclass
class Trace:
    """The first difference between two runs in a training call.

    Attributes:
      variables: The variables that differ before the call.
      gradients: The gradients that differ, by variable.
      changes: The changes of variables that differ.
      operation: A description of the first operation that differs; empty if none was found.
      gap: The gap between its values; None if they differ in type or shape.
    """

    call: int
    variables: list[tuple[str, Gap]] = field(default_factory=list)
    gradients: list[tuple[str, Gap]] = field(default_factory=list)
    changes: list[tuple[str, Gap]] = field(default_factory=list)
    operation: str = ""
    gap: Gap | None = None


class _Graph:
    """The operations of one run in one call."""

    def __init__(self, run: Run, call: int) -> None:
        recorded = run.operations(call)
        self.values = run.load("floats", call)
        self.operations = {op["name"]: op for op in recorded["operations"]}
        self.order = {name: number for number, name in enumerate(self.operations)}

    def updates(self, variable: str) -> list[dict[str, Any]]:
        """Returns the operations that update a variable."""
        return [op for op in self.operations.values() if op["writes"] == variable]


class _Pairing:
    """Pairs of equivalent tensors of two graphs, by name or else by the operations using them."""

    def __init__(self, a: _Graph, b: _Graph, ends: list[tuple[str, str]]) -> None:
        self.a, self.b = a, b
        self.tensors = {
            tensor: tensor
            for name, op in a.operations.items()
            if name in b.operations
            for tensor in op["outputs"]
            if tensor in b.operations[name]["outputs"]
        }
        self._taken = set(self.tensors.values())
        for ours, theirs in ends:
            self._pair(ours, theirs)
        known = -1
        while known < len(self.tensors):  # Chains of renamed operations take several passes.
            known = len(self.tensors)
            for op in a.operations.values():
                self.pair_inputs(op, self.partner(op))

    def pair_inputs(self, op: dict[str, Any], other: dict[str, Any] | None) -> None:
        """Pairs the inputs of two operations of one type."""
        if other is None or op["type"] != other["type"]:
            return
        if len(op["inputs"]) == len(other["inputs"]):
            for ours, theirs in zip(op["inputs"], other["inputs"]):
                self._pair(ours, theirs)

    def _pair(self, ours: str, theirs: str) -> None:
        if ours not in self.tensors and theirs not in self._taken:
            self.tensors[ours] = theirs
            self._taken.add(theirs)

    def partner(self, op: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the operation of B that corresponds to one of A."""
        for tensor in op["outputs"]:
            if tensor in self.tensors:
                return self.b.operations.get(operation_of(self.tensors[tensor]))
        same = self.b.operations.get(op["name"])
        return same if same is not None and not same["outputs"] else None

    def gap(self, tensor: str) -> Gap | None:
        """Returns the gap between a tensor of A and its partner; None if a value is unknown."""
        other = self.tensors.get(tensor, "")
        if tensor not in self.a.values or other not in self.b.values:
            return None
        value = self.a.values[tensor]
        op = self.a.operations[operation_of(tensor)]
        noise = 0.0
        for name in op["inputs"]:  # Inputs that are summed or subtracted add their rounding errors.
            if name in self.a.values:
                array = self.a.values[name]
                summed = max(1.0, array.size / max(1, value.size))
                noise += _ROUNDING * values.rms(array) * summed**0.5
        return values.tensors(value, self.b.values[other], _RTOL, noise)

    def is_of_other_shape(self, tensor: str) -> bool:
        """Returns whether both values are known and have different shapes."""
        other = self.tensors.get(tensor, "")
        known = tensor in self.a.values and other in self.b.values
        return known and self.a.values[tensor].shape != self.b.values[other].shape

    def differs(self, tensor: str) -> bool:
        """Returns whether a tensor of A and its partner are known to differ."""
        gap = self.gap(tensor)
        return self.is_of_other_shape(tensor) if gap is None else gap.differs


def operation_of(tensor: str) -> str:
    """Returns the name of the operation of a tensor."""
    return tensor.rpartition(":")[0]


def trace(a: Run, b: Run, call: int) -> Trace:
    """Returns the first difference in a call whose operations both runs have recorded."""
    result = Trace(call)
    starts = [comparison.before(run, call) for run in (a, b)]
    for name in a.calls[call - 1].get("learned", ()):
        if all(name in arrays for arrays in starts):
            gap = values.tensors(starts[0][name], starts[1][name], _RTOL)
            if gap is not None and gap.differs:
                result.variables.append((name, gap))
    result.changes = [item for item in comparison.changes(a, b, call) if item[1].differs]
    losses = comparison.pairs(*(list(run.calls[call - 1]["losses"]) for run in (a, b)))
    slopes = comparison.gradients(a, b, call)
    pairing = _Pairing(_Graph(a, call), _Graph(b, call), losses + list(slopes.values()))
    for name, (tensor, _) in slopes.items():
        gap = pairing.gap(tensor)
        if gap is not None and gap.differs:
            result.gradients.append((name, gap))
    ends = [tensor for tensor, _ in losses if pairing.differs(tensor)]
    ends = ends or [slopes[name][0] for name, _ in result.gradients]
    if ends:
        _find(pairing, ends, result)
    elif result.changes:
        _find_update(pairing, result.changes[0][0], result)
    return result


def _find(pairing: _Pairing, ends: list[str], result: Trace) -> bool:
    """Walks from tensors that differ to the first operation whose values differ."""
    graph, first, waiting, seen = pairing.a, "", list(ends), set(ends)
    while waiting:
        tensor = waiting.pop()
        op = graph.operations.get(operation_of(tensor))
        if op is None:
            continue
        differs = pairing.differs(tensor)
        if differs and (not first or graph.order[op["name"]] < graph.order[operation_of(first)]):
            first = tensor
        # If B lacks an operation, continue with its inputs.
        is_open = differs or pairing.gap(tensor) is None
        for name in op["inputs"] if is_open else ():
            if name not in seen and (pairing.differs(name) or pairing.gap(name) is None):
                seen.add(name)
                waiting.append(name)
    if first:
        _describe(pairing, first, result)
    return bool(first)


def _describe(pairing: _Pairing, tensor: str, result: Trace) -> None:
    op = pairing.a.operations[operation_of(tensor)]
    other = pairing.partner(op)
    result.gap = pairing.gap(tensor)
    result.operation = _named(op, other)
    if result.gap is None and other is not None:
        shapes = [
            list(graph.values[name].shape)
            for graph, name in ((pairing.a, tensor), (pairing.b, pairing.tensors[tensor]))
        ]
        result.operation += f", of shape {shapes[0]} in A and {shapes[1]} in B"


def _named(op: dict[str, Any], other: dict[str, Any] | None) -> str:
    if other is None:
        return f"{op['name']} ({op['type']}) in A, which B lacks"
    if (op["name"], op["type"]) == (other["name"], other["type"]):
        return f"{op['name']} ({op['type']})"
    return f"{op['name']} ({op['type']}) in A, {other['name']} ({other['type']}) in B"


def _find_update(pairing: _Pairing, variable: str, result: Trace) -> None:
    """Finds the reason why equal gradients update a variable differently."""
    ours, theirs = (graph.updates(variable) for graph in (pairing.a, pairing.b))
    if not (ours and theirs):
        side = "B" if ours else "A"
        result.operation = f"no operation of {side} updates {variable}"
        return
    op, other = ours[-1], theirs[-1]
    if op["type"] == other["type"]:
        pairing.pair_inputs(op, other)
        differing = [name for name in op["inputs"][1:] if pairing.differs(name)]
        if differing and _find(pairing, differing, result):
            return
    result.operation = f"{_named(op, other)}, which updates {variable}"
    result.gap = result.changes[0][1]
