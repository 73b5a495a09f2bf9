"""TF1 model code on the modern runtime: a v1 graph, lifted so that workers can run it."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from compat._tensorflow import deferred_captures, tf, tf1
from compat.runtime.device_placement import Placed, operations
from compat.runtime.modern.variables import Placement, WorkerVariable, full_name
from compat.runtime.session import Packed, pack

# The collection in which a graph keeps what `get_variable` has made; it has had no public name, and
# no other name, from 1.15 to 2.21.
_VARIABLE_STORE = ("__variable_store",)


class Lifted:
    """A v1 graph, of which functions take copies into themselves.

    Copied and not called: among the operations of its own TensorFlow orders what reads and what
    writes a variable, and nothing else. Around calls that can only be had by making each wait for
    all results of the one before, which takes a message to the parameter servers and back.

    Attributes:
      names: the names of its scalars, in the order in which they are packed.
      others: the names of its other values.
      graph_def: TensorFlow's description of what the values depend on; the rest is left out.
      trains: whether it updates the global step.
    """

    def __init__(
        self, packed: Packed, function: Any, variables: Sequence[WorkerVariable], global_step: Any
    ) -> None:
        graph = function.graph
        self.names, self.others = packed.names, list(packed.others)
        self._outputs = [tensor.name for tensor in function.outputs]
        self.graph_def = tf1.graph_util.extract_sub_graph(
            graph.as_graph_def(), [tensor.op.name for tensor in function.outputs]
        )
        self._empty = [
            (
                [size or 0 for size in (tensor.shape.as_list() if tensor.shape.rank else [])],
                tensor.dtype,
            )
            for tensor in function.outputs[1:]
        ]
        self._captured = [outer for outer, _ in graph.captures]
        # The keys by which workers find each other's tensors: each copy needs one of its own.
        self._deferred = deferred_captures(graph)
        captured = {
            inner.op.name: outer for outer, inner in graph.captures if outer.dtype == tf.resource
        }
        self._variables = {name: outer.device for name, outer in captured.items()}
        self._inputs = [tensor.name for tensor in function.inputs]
        self._worker_variables = list(variables)
        self._kept = {node.name for node in self.graph_def.node}
        steps = {
            name
            for name, outer in captured.items()
            if global_step is not None and outer is global_step.handle
        }
        self.trains = any(
            node.op.startswith("Assign") and node.input and node.input[0].split(":")[0] in steps
            for node in self.graph_def.node
        )

    def worker_handles(self) -> list[Any]:
        """Makes the handles of the worker's variables, once for all copies in a function.

        Operations on one handle are ordered, those on different ones are not.
        """
        return [variable.handle() for variable in self._worker_variables]

    def empty_others(self) -> list[Any]:
        """Returns tensors of the types of the other values, for when no step was made."""
        return [
            tf.fill(shape, "") if dtype == tf.string else tf.zeros(shape, dtype)
            for shape, dtype in self._empty
        ]

    def __call__(
        self, tensors: Sequence[Any], copy: int = 0, handles: Sequence[Any] = ()
    ) -> list[Any]:
        """Copies the graph into the function that is being traced.

        Args:
          tensors: its inputs.
          copy: number of the copy within a function; each draws random numbers of its own.
          handles: of the worker's variables.

        Returns:
          The packed scalars, float64 `[len(names)]`, and the other values.
        """
        graph_def = type(self.graph_def)()
        graph_def.CopyFrom(self.graph_def)
        inner = [function.node_def for function in graph_def.library.function]
        for nodes in [graph_def.node, *inner]:
            for node in nodes:
                if "seed2" in node.attr and (node.attr["seed"].i or node.attr["seed2"].i):
                    node.attr["seed2"].i += copy
        if copy and any(_is_seeded(node) for nodes in inner for node in nodes):
            _rename_functions(graph_def, f"_copy_{copy}")
        function = tf1.get_default_graph()
        given = [function.capture(tensor) for tensor in (*tensors, *self._captured)]
        given += tf.nest.flatten([value() for value in self._deferred])
        given_by_name = dict(zip(self._inputs, given))
        for variable, handle in zip(self._worker_variables, handles):
            given_by_name[variable.name] = function.capture(handle)
        return list(
            tf1.import_graph_def(
                graph_def,
                input_map={n: t for n, t in given_by_name.items() if n.split(":")[0] in self._kept},
                return_elements=self._outputs,
                name="step",
            )
        )

    def operations(self) -> list[Placed]:
        """Returns the operations of the graph, and where they run."""
        return operations(self.graph_def, self._outputs[0], self._variables)


def _is_seeded(node: Any) -> bool:
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


def _rename_functions(graph_def: Any, suffix: str) -> None:
    """Gives a graph's functions, the bodies of its loops and branches, names of their own.

    Functions of the same name are taken for the same, whatever seeds they have.
    """
    names = {function.signature.name for function in graph_def.library.function}
    for function in graph_def.library.function:
        function.signature.name += suffix
    for gradient in graph_def.library.gradient:
        gradient.function_name += suffix
        gradient.gradient_func += suffix
    bodies = [function.node_def for function in graph_def.library.function]
    for nodes in [graph_def.node, *bodies]:
        for node in nodes:
            if node.op in names:
                node.op += suffix
            for attr in node.attr.values():
                for func in (
                    [attr.func, *attr.list.func] if attr.HasField("func") else attr.list.func
                ):
                    if func.name in names:
                        func.name += suffix


def lift(
    function: Callable[..., Mapping[str, Any]], signature: Sequence[Any], placement: Placement
) -> Lifted:
    """Lifts a function that builds a v1 graph out of it, so that workers can run it.

    Args:
      function: takes tensors, returns a dict of tensors; may make variables.
      signature: a `tf.TensorSpec` for each tensor.
      placement: makes its variables.

    Raises:
      UserError: see `compat.step`.
    """
    found: list[Packed] = []
    variable_scope, name_scope = tf1.get_variable_scope(), full_name("x")[:-1]

    def build(*tensors: Any) -> Any:
        # What a v1 graph would know of the variables that were made before, and of the scopes.
        store = tf1.get_collection_ref(_VARIABLE_STORE)
        store.extend(placement.variable_store)
        for variable in placement.variables.values():
            tf1.add_to_collection(tf1.GraphKeys.GLOBAL_VARIABLES, variable)
            if variable.trainable:
                tf1.add_to_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, variable)
        if placement.global_step is not None:
            tf1.add_to_collection(tf1.GraphKeys.GLOBAL_STEP, placement.global_step)
        inputs = [tf.identity(tensor) for tensor in tensors]  # What may be a control input.
        with tf1.name_scope(name_scope or None), tf1.variable_scope(
            variable_scope, auxiliary_name_scope=False
        ):
            packed = pack(function(*inputs), tf1.train.get_global_step())
        found.append(packed)
        placement.variable_store = list(store)
        return [packed.vector, *packed.others.values()]

    placement.worker_variables = []
    with placement.scope():
        lifted = tf1.wrap_function(build, list(signature))
    if placement.global_step is None:
        placement.global_step = placement.variables.get("global_step")
    return Lifted(found[-1], lifted, placement.worker_variables, placement.global_step)
