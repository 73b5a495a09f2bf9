"""Finds which operations of a graph a call needs."""

from __future__ import annotations

from typing import Any, Collection, Iterable


class Needed:
    """The operations that a call runs, and the tensors that are computed elsewhere.

    Attributes:
      operations: all operations that the call runs, in no order.
      edges: by name, the tensors that these use and that are computed elsewhere.
    """

    def __init__(
        self,
        tensors: Iterable[Any],
        operations: Iterable[Any],
        fed: Collection[str],
        elsewhere: Collection[Any] = (),
    ) -> None:
        """Follows inputs from the fetches back to the fed tensors.

        Args:
          tensors: the fetched tensors.
          operations: the operations to run.
          fed: the names of the fed tensors.
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
    """Whether an operation need not run, since all of its outputs are fed."""
    return bool(op.outputs) and all(tensor.name in fed for tensor in op.outputs)
