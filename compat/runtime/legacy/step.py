"""A step of the legacy runtime: operations in the graph, and the placeholders that they read."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.runtime.device_placement import Placed, operations
from compat.runtime.legacy.variables import global_step
from compat.runtime.session import Step, Values, pack

_VARIABLES = ("VarHandleOp", "VariableV2")


class LegacyStep(Step):
    """A step whose operations are in the default graph.

    Attributes:
      graph: that graph.
      vector: its scalars, packed.
      outputs: these, and its other values.
      fetches: what a call fetches.
      iterator: the elements of its dataset, or None.
    """

    def __init__(
        self,
        function: Callable[..., Mapping[str, Any]],
        signature: Sequence[Any],
        per_worker_data: Sequence[np.ndarray],
        dataset: Callable[[], Any] | None,
        device: str,
    ) -> None:
        self.graph = tf1.get_default_graph()
        self.iterator: Any = None
        self.placeholders = [_placeholder(spec) for spec in signature]
        self.per_worker_data = []
        elements = []
        with tf1.device(device):
            if dataset is not None:
                self.iterator = tf1.data.make_initializable_iterator(dataset())
                elements.append(self.iterator.get_next())
            for array in per_worker_data:
                first = tf1.placeholder(array.dtype, array.shape)
                # In no collection, so nothing saves it or waits for it; the session fills it.
                variable = tf1.Variable(
                    first, trainable=False, collections=[], use_resource=True, name="per_worker"
                )
                self.per_worker_data.append((variable, first, array))
        stored = [variable for variable, _, _ in self.per_worker_data]
        found = pack(function(*elements, *stored, *self.placeholders), global_step())
        self.names, self.vector, others = found
        self.others = list(others)
        self.outputs = [self.vector, *others.values()]
        self.fetches: Any = self.outputs if others else self.vector

    def values(self, fetched: Any) -> Values:
        """Returns the values of a call by name."""
        return self.unpack(fetched[0], fetched[1:]) if self.others else self.unpack(fetched)

    def graph_def(self) -> bytes:
        return bytes(self.graph.as_graph_def().SerializeToString())

    def operations(self) -> list[Placed]:
        graph_def = self.graph.as_graph_def()
        handles = {n.name: n.device for n in graph_def.node if n.op in _VARIABLES}
        return operations(graph_def, [t.name for t in self.outputs], handles)

    def feed(self, arrays: Sequence[Any]) -> dict[Any, Any]:
        """Returns the feed of one call.

        Raises:
          UserError: the number of arrays is wrong.
        """
        if len(arrays) != len(self.placeholders):
            raise UserError(
                f"a step was run on {len(arrays)} arrays; its signature has "
                f"{len(self.placeholders)}, pass as many"
            )
        return dict(zip(self.placeholders, arrays))


def _placeholder(spec: Any) -> Any:
    if type(spec).__name__ == "SparseTensorSpec":
        return tf1.sparse_placeholder(spec.dtype, spec.shape)
    return tf1.placeholder(spec.dtype, spec.shape)
