"""Functions that build v1 graphs, lifted out of them so that workers can run copies."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs.device_placement import Placed, operations
from compat.runtime.graphs.packing import pack_messages
from compat.runtime.modern import graphs
from compat.runtime.modern.data import captured_tables
from compat.runtime.modern.gradient_accumulation import accumulations
from compat.runtime.modern.queues import InputQueues, input_queues, kept_queues
from compat.runtime.modern.variables import Placement, full_name
from compat.runtime.outputs import Packed, check_inputs, pack


class Resources(NamedTuple):
    """What all copies of a graph in one function share."""

    captured: Sequence[Any]  # What the graph captures from around it, such as variables.
    # By name of their tensor, what its own operations with state give: tables, queues, iterators.
    state: Mapping[str, Any]


class Lifted:
    """A v1 graph, of which functions take copies into themselves.

    Copied and not called: among the operations of its own TensorFlow orders what reads and what
    writes a variable, and nothing else. Around calls that can only be had by making each wait for
    all results of the one before, which takes a message to the parameter servers and back.
    """

    def __init__(
        self,
        packed: Packed,
        function: Any,
        placement: Placement,
        outputs: Sequence[Any],
        tables: Any = None,
        fed: Sequence[str] = (),
        arguments: Sequence[str] | None = None,
    ) -> None:
        self._packed, self._function, self._placement = packed, function, placement
        self.names, self.others, self.structures = packed.names, [*packed.others], packed.structures
        # The types of its values by name.
        self.specs = {n: tf.TensorSpec(t.shape, t.dtype) for n, t in packed.tensors.items()}
        self.updates = [*packed.operations()]  # The names of the operations.
        self.summarizes = packed.summary is not None  # Its last output is a summary.
        self._outputs = [tensor.name for tensor in outputs]
        self._values = self._outputs[: 1 + len(self.others)]  # All but the summary.
        self._empty = [(t.shape, t.dtype) for t in outputs]
        self._captured = [outer for outer, _ in function.graph.captures]
        # The keys by which workers find each other's tensors: each copy needs one of its own.
        self._deferred = private.deferred_captures(function.graph)
        inputs = [tensor.name for tensor in function.graph.inputs]
        end = len(inputs) - len(self._captured) - len(self._deferred)
        self._arguments = inputs[:end] if arguments is None else arguments
        self.graph_def = graphs.needed(
            function.graph.as_graph_def(), self._outputs, [*inputs, *fed], fed
        )
        used = graphs.inputs(self.graph_def)
        # What calls pass behind the arguments of the function, in the place of these tensors.
        self.fed = [name for name in fed if name in used]
        self._inputs = [*self._arguments, *self.fed, *inputs[end:]]
        # As where the updates of local variables are grouped: a worker would ask this process.
        graphs.run_anywhere(self.graph_def, {v.device for v in placement.local_variables})
        # Of optimizers whose updates take several calls, each of which is told whether it is last.
        self.accumulations = accumulations(function.graph)
        self._body, self._state = graphs.without_state(self.graph_def)
        captured = set(map(id, self._captured))
        # The names of variables that it uses and that are this process's own.
        self.outside = [v.name for v in placement.outside if id(v.handle) in captured]
        placement.note_tables(function.graph)
        self._local = {id(variable.handle): variable for variable in placement.local_variables}
        self._tables = captured_tables(function) if tables is None else tables
        of_workers = {*self._local, *self._tables}
        self._variables = {
            inner.op.name: "" if id(outer) in of_workers else outer.device
            for outer, inner in function.graph.captures
            if outer.dtype == tf.resource
        }
        homes = {name: device for name, device in self._variables.items() if device}
        pack_messages(self._body, function.graph, homes)
        step, known = placement.global_step, placement.variables.values()
        # Whether it updates the model, and the global step; one stands for the other without that.
        self.learns = self._writes(v for v in known if v.trainable)
        self.trains = self.learns if step is None else self._writes([step])

    def _writes(self, variables: Iterable[Any]) -> bool:
        handles, captures = {id(v.handle) for v in variables}, self._function.graph.captures
        names = [inner.op.name for outer, inner in captures if id(outer) in handles]
        return graphs.writes(self.graph_def, names)

    def select(self, names: Sequence[str], inputs: Sequence[int], known: Sequence[str]) -> Lifted:
        """Returns some values of the same graph; see `Step.select`.

        Args:
          names: of the values.
          inputs: which of its last inputs before the captured ones it takes, in this order.
          known: the names of all of these.
        """
        with self._function.graph.as_default():
            is_whole = len(inputs) == len(known)
            packed = self._packed.select(names, is_whole, lambda: self._placement.global_step)
        start = len(self._arguments) - len(known)
        given = self._arguments[start:]
        selected = self._with(
            packed, self.fed, [*self._arguments[:start], *[given[i] for i in inputs]]
        )
        present = {node.name for node in selected.graph_def.node}
        left_out = [i for i in range(len(known)) if i not in inputs]
        missing = [known[i] for i in left_out if given[i].partition(":")[0] in present]
        check_inputs(names, missing)
        return selected

    def feeding(self, names: Sequence[str]) -> Lifted:
        """Returns the same graph with its tensors of these names, and no others, fed by calls."""
        return self._with(self._packed, names, self._arguments)

    def queues(self) -> InputQueues | None:
        """Returns the queues of input that the graph reads, if there are any."""
        return input_queues(self._function, self._outputs)

    def _with(self, packed: Packed, *args: Any) -> Lifted:
        function, placement = self._function, self._placement
        return Lifted(packed, function, placement, packed.flat(), self._tables, *args)

    def resources(self, on_worker: bool) -> Resources:
        """Opens what copies share, in a function; a worker has variables and tables of its own."""
        captured = list(self._captured)
        for i, outer in enumerate(self._captured) if on_worker else ():
            if id(outer) in self._local:
                captured[i] = _local_handle(self._local[id(outer)], self._placement.sessions)
            elif id(outer) in self._tables:
                captured[i] = self._tables[id(outer)].on_worker()
        names = [f"{node.name}:0" for node in self._state.node]
        tensors = tf1.import_graph_def(self._state, return_elements=names, name="state")
        return Resources(captured, dict(zip(names, tensors)))

    def __call__(
        self,
        tensors: Sequence[Any],
        resources: Resources,
        copy: int = 0,
        summary: bool = False,
    ) -> list[Any]:
        """Copies the graph into a function; returns the packed scalars and the other values.

        With `summary` also that. Each `copy`, by its number, draws random numbers of its own.
        """
        function = tf1.get_default_graph()
        given = [function.capture(tensor) for tensor in (*tensors, *resources.captured)]
        calls = function  # Branches and loops are given nothing at each call.
        while getattr(calls, "is_control_flow_graph", False):
            calls = calls.outer_graph
        with calls.as_default():
            deferred = tf.nest.flatten([value() for value in self._deferred])
        given += [function.capture(tensor) for tensor in deferred]
        mapped = dict(zip(self._inputs, given))
        mapped.update((k, function.capture(tensor)) for k, tensor in resources.state.items())
        body = graphs.reseeded(self._body, copy)
        used = graphs.inputs(body) | set(self._outputs)
        wanted = self._outputs if summary else self._values
        outputs: list[Any] = tf1.import_graph_def(
            body,
            input_map={k: v for k, v in mapped.items() if k in used},
            return_elements=wanted,
            name="step",
        )
        return outputs

    def empty(self, summary: bool = False) -> list[Any]:
        """Returns outputs for when no step was made: zeros, of length 0 where that is not known."""
        return [
            tf.zeros([size or 0 for size in shape] if shape.rank is not None else [], dtype)
            for shape, dtype in self._empty[: len(self._outputs if summary else self._values)]
        ]

    def operations(self) -> list[Placed]:
        """Returns the operations of the graph, and where they run."""
        return operations(self.graph_def, self._values, self._variables)


def _local_handle(variable: Any, session: int) -> Any:
    """Returns the handle of a worker's own variable, which has the value of `variable` first."""
    handle = tf1.raw_ops.VarHandleOp(
        dtype=variable.dtype, shape=variable.shape, shared_name=f"local/{id(variable)}/{session}"
    )
    with tf.init_scope():  # Its value as this process has it, which is the initial one.
        first = variable.numpy()

    def initialize() -> Any:
        tf1.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(first, variable.dtype))
        return tf.constant(True)

    tf.cond(tf1.raw_ops.VarIsInitializedOp(resource=handle), lambda: tf.constant(True), initialize)
    return handle


def lift(
    function: Callable[..., Mapping[str, Any]], signature: Sequence[Any], placement: Placement
) -> Lifted:
    """Lifts a v1 graph out of the function that builds it, so that workers can run it."""
    found: list[Packed] = []
    variable_scope, name_scope = tf1.get_variable_scope(), full_name("x")[:-1]

    def build(*tensors: Any) -> Any:
        if placement.next_seed and tf1.get_default_graph().seed is not None:
            # Operations draw by the seed of the graph, and by a number that one graph would have
            # gone on counting, of draws or operations: else two steps begin with the same weights.
            while tf1.get_seed(None)[1] < placement.next_seed - 1:
                tf.no_op()
        # What a v1 graph would know of the variables that were made before, and of the scopes.
        with placement.graph_scope(), tf1.name_scope(name_scope or None), tf1.variable_scope(
            variable_scope, auxiliary_name_scope=False
        ):
            found.append(pack(lambda: function(*tensors), tf1.train.get_global_step))
            placement.note_scopes()
        placement.next_seed = tf1.get_seed(None)[1] or 0
        return found[0].flat()

    with placement.scope(), kept_queues():
        lifted = tf1.wrap_function(build, list(signature))
    if placement.global_step is None:
        placement.global_step = placement.variables.get("global_step")
    return Lifted(found[0], lifted, placement, lifted.outputs)
