"""A step: operations in the graph, and the placeholders that they read."""

from __future__ import annotations

import copy
from typing import Any, Sequence

from compat._tensorflow import tf, tf1
from compat.runtime.graphs.chain import CALLS_BEFORE, Chain
from compat.runtime.graphs.device_placement import Placed, operations
from compat.runtime.graphs.homes import task_device
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.outputs import Packed, check_inputs, pack
from compat.runtime.program.variables import create, global_step
from compat.runtime.session import Step, StepDefinition

_VARIABLES = ("VarHandleOp", "VariableV2")


class ProgramStep(Step):
    """A step whose operations are in the default graph."""

    def __init__(
        self, definition: StepDefinition, shard: tuple[int, int], device: str | None
    ) -> None:
        self.definition = definition
        self.graph = tf1.get_default_graph()
        self.iterator: Any = None  # The iterator of its dataset.
        self.per_worker_data: list[Any] = []
        self.placeholders = [_placeholder(spec) for spec in definition.signature]
        inputs = [*self._inputs(definition, shard, device), *self.placeholders]
        with tf1.variable_creator_scope(create):
            self._take(pack(lambda: definition.function(*inputs), global_step))

    def _inputs(
        self, definition: StepDefinition, shard: tuple[int, int], device: str | None
    ) -> list[Any]:
        """Returns the arguments of the function that come before those that each call passes."""
        inputs = []
        with tf1.device(device):
            if definition.dataset is not None:
                elements = definition.dataset(*shard)
                self.iterator = tf1.data.make_initializable_iterator(elements)
                inputs.append(self.iterator.get_next())
            for array in definition.per_worker_data:
                first = tf1.placeholder(array.dtype, array.shape)
                # In no collection, so nothing saves it or waits for it. The session assigns it.
                variable = tf1.Variable(
                    first, trainable=False, collections=[], use_resource=True, name="per_worker"
                )
                self.per_worker_data.append((variable, first, array))
                inputs.append(variable)
        return inputs

    def _take(self, packed: Packed) -> None:
        self._packed = packed
        self.names, self.others = packed.names, list(packed.others)
        self.tensors, self.summary = packed.tensors, packed.summary
        self.operations_by_name, self.structures = packed.operations(), packed.structures
        self.outputs = [packed.vector, *packed.others.values()]
        self.made = 0  # Number of updates that this process has made.
        self._chain: Chain | None = None

    def select(self, *names: str, inputs: Sequence[str] | None = None) -> Any:
        selected, places = copy.copy(self), self.definition.positions(inputs)
        signature = [self.definition.signature[place] for place in places]
        selected.definition = self.definition._replace(signature=signature)
        selected.placeholders = [self.placeholders[place] for place in places]
        with self.graph.as_default():
            is_whole = len(places) == len(self.placeholders)
            selected._take(self._packed.select(names, is_whole, global_step))
        others = {
            self.placeholders[place].op: name
            for place, name in enumerate(self.definition.parameters())
            if place not in places
        }
        check_inputs(names, [others[op] for op in dependencies(selected.outputs) if op in others])
        return selected

    def graph_def(self) -> bytes:
        return bytes(self.graph.as_graph_def().SerializeToString())

    def operations(self) -> list[Placed]:
        graph_def = self.graph.as_graph_def()
        for node in graph_def.node:
            node.device = task_device(self.graph.get_operation_by_name(node.name))
        handles = {n.name: n.device for n in graph_def.node if n.op in _VARIABLES}
        return operations(graph_def, [t.name for t in self.outputs], handles)

    def feed(self, arrays: Sequence[Any], feed_dict: Any = None) -> dict[Any, Any]:
        """Returns the feed of one call; `feed_dict` may also have tensors of the graph."""
        named: dict[Any, Any] = {}
        feed: dict[Any, Any] = {}
        for key, array in (feed_dict or {}).items():
            (named if isinstance(key, (str, tf.TensorSpec)) else feed)[key] = array
        feed.update(zip(self.placeholders, self.definition.arrays(arrays, named)))
        return feed

    def chain(self, arrays: Sequence[Any]) -> Chain | None:
        """Returns the copies that make several updates in a call; None if each needs its own call.

        Args:
          arrays: arrays with a row for each update.
        """
        if self.made < CALLS_BEFORE:
            return None
        if self._chain is None:
            self.definition.check_arrays(arrays)
            self._chain = Chain(self.graph, self.placeholders, self.outputs)
        return self._chain if self._chain.takes(arrays) else None


def _placeholder(spec: Any) -> Any:
    if type(spec).__name__ == "SparseTensorSpec":
        return tf1.sparse_placeholder(spec.dtype, spec.shape)
    return tf1.placeholder(spec.dtype, spec.shape)  # Unnamed: a variable may have the spec's name.
