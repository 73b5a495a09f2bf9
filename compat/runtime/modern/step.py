"""A step of the modern runtime: a part of the program's graph, with inputs for workers' data."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.runtime.graphs.device_placement import Placed
from compat.runtime.graphs.nodes import calls_python, dependencies
from compat.runtime.graphs.session import eagerly
from compat.runtime.modern import tables
from compat.runtime.outputs import Packed
from compat.runtime.program.step import ProgramStep
from compat.runtime.session import StepDefinition


class Outputs(list):  # type: ignore[type-arg]
    """The fetches of a step, by which a session recognizes the step."""

    step: ModernStep


class ModernStep(ProgramStep):
    """A step that takes all of its data as inputs, since workers run it.

    Attributes:
      root: the step from which this one was selected, or itself.
      stored: the inputs that workers read: the components of an element, and stored arrays.
      hands_out: whether workers run it; if false, this process does.
      is_shared: whether all workers make each run together.
    """

    def __init__(
        self, definition: StepDefinition, shard: tuple[int, int], hands_out: bool, is_shared: bool
    ) -> None:
        self.root, self.shard = self, shard
        self.hands_out, self.is_shared = hands_out, is_shared
        self.updates, self.streams = definition.updates, definition.dataset is not None
        with _branches_as_functions():
            super().__init__(definition, shard, "")
        for op in dependencies(self.outputs):
            tables.export(op)
        if hands_out:
            self._check_operations()

    def _inputs(
        self, definition: StepDefinition, shard: tuple[int, int], device: str | None
    ) -> list[Any]:
        del device
        inputs: list[Any] = []
        self.stored: list[Any] = []
        if definition.dataset is not None:
            with eagerly():
                element = definition.dataset(*shard).element_spec
            specs = tf.nest.flatten(element, expand_composites=True)
            self.stored = [tf1.placeholder(spec.dtype, spec.shape) for spec in specs]
            packed = tf.nest.pack_sequence_as(element, self.stored, expand_composites=True)
            inputs.append(packed)
        arrays = [np.asarray(array) for array in definition.per_worker_data]
        inputs += [tf1.placeholder(array.dtype, array.shape) for array in arrays]
        self.stored += inputs[len(inputs) - len(arrays) :]
        return inputs

    @property
    def inputs(self) -> list[Any]:
        """All input tensors of a call."""
        return [*self.stored, *self.passed]

    def values(self) -> set[Any]:
        """Returns the operations that compute the step's return values."""
        tensors = [*self.outputs, *self.tensors.values()]
        return {*(tensor.op for tensor in tensors), *self.operations_by_name.values()}

    @property
    def passed(self) -> list[Any]:
        """The tensors that each call passes."""
        return [tensor for each in self.placeholders for tensor in _components(each)]

    def _take(self, packed: Packed) -> None:
        super()._take(packed)
        self.outputs = Outputs(self.outputs)
        self.outputs.step = self

    def operations(self) -> list[Placed]:
        placed = super().operations()
        if not self.hands_out:
            return placed
        # Any free worker runs the operations that are on no server.
        return [each if "/job:ps" in each.device else each._replace(device="") for each in placed]

    def _check_operations(self) -> None:
        """Raises a `UserError` if the step has operations that workers cannot run."""
        used = {op.name for op in dependencies(self.outputs)}
        for variable in tf1.global_variables():
            if variable.op.name in used and "/job:" not in variable.device:
                raise UserError(made_outside(f"variable {variable.op.name}"))
        graph_def = self.graph.as_graph_def()
        kept = [node for node in graph_def.node if node.name in used]
        del graph_def.node[:]
        graph_def.node.extend(kept)
        if calls_python(graph_def):
            raise UserError(
                "the step calls Python (tf.py_func, tf.py_function or tf.numpy_function), and the "
                "workers that run it have no Python of the program; use operations of TensorFlow, "
                "make the values before session.run(), or use --runtime=legacy"
            )


@contextlib.contextmanager
def _branches_as_functions() -> Iterator[None]:
    """Makes `tf.cond` and `tf.while_loop` use functions in the context, as TensorFlow 2 does.

    Their older operations, which `tf.compat.v1.disable_v2_behavior` chooses, cannot be part of a
    function if they update variables.
    """
    were = tf1.control_flow_v2_enabled()
    tf1.enable_control_flow_v2()
    try:
        yield
    finally:
        if not were:
            tf1.disable_control_flow_v2()


def made_outside(what: str) -> str:
    """Returns the error message for `what`, such as a variable, that the workers do not find."""
    return (
        f"{what} was made outside of `with compat.device(...)`, so this task would train alone; "
        "make variables and steps inside it"
    )


def _components(placeholder: Any) -> list[Any]:
    return list(tf.nest.flatten(placeholder, expand_composites=True))
