"""Finds which operations of a graph a call needs."""

from __future__ import annotations

from typing import Any, Collection, Iterable


class Needed:
    """The operations that a call runs, and the tensors that it takes from elsewhere.

    Attributes:
      operations: all that the call runs, in no order.
      edges: tensors by name that stand for a value computed elsewhere, and are used.
    """

    def __init__(
        self,
        tensors: Iterable[Any],
        operations: Iterable[Any],
        fed: Collection[str],
        elsewhere: Collection[Any] = (),
    ) -> None:
        """Follows inputs from fetches back to what is fed.

        Args:
          tensors: that are fetched.
          operations: that are run.
          fed: names of tensors whose value is given.
          elsewhere: operations that are run elsewhere; their outputs become edges.
        """
        self.operations: set[Any] = set()
        self.edges: dict[str, Any] = {}
        todo = [op for op in operations if op not in elsewhere]

        def take(tensor: Any) -> None:
            if tensor.name in fed:
                return
            if tensor.op in elsewhere:
                self.edges[tensor.name] = tensor
            else:
                todo.append(tensor.op)

        for tensor in tensors:
            take(tensor)
        while todo:
            op = todo.pop()
            if op in self.operations:
                continue
            self.operations.add(op)
            for tensor in op.inputs:
                take(tensor)
            todo.extend(
                other
                for other in op.control_inputs
                if other not in elsewhere and not _is_fed(other, fed)
            )


def _is_fed(op: Any, fed: Collection[str]) -> bool:
    """Whether nothing of an operation is left to be run, as the values of all outputs are given."""
    return bool(op.outputs) and all(tensor.name in fed for tensor in op.outputs)
