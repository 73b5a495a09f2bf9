"""A part of the program's graph, lifted out of it so that functions can take copies of it."""

from __future__ import annotations

import uuid
from typing import Any, Mapping, NamedTuple, Sequence

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs import draws, nodes
from compat.runtime.graphs.dependence import VARIABLES, holds_state
from compat.runtime.graphs.packing import pack_messages
from compat.runtime.graphs.walk import Needed
from compat.runtime.modern import all_reduce, graphs
from compat.runtime.modern.tables import Tables


class Wanted(NamedTuple):
    """The tensors and operations of a graph that a call computes."""

    tensors: Sequence[Any]
    operations: Sequence[Any]  # Further operations that the call runs.
    given: Sequence[Any]  # Tensors whose values the call passes.

    @property
    def key(self) -> Any:
        """A hashable key, which is equal for equal requests."""
        return tuple(tuple(each.name for each in part) for part in self)


class Lifted:
    """The part of a session's graph that a step needs.

    A function of several steps has a copy of the part for each step. If it called a function
    instead, each call would wait for all results of the previous call, which takes a message to the
    parameter servers and back. With copies, an operation waits only for earlier ones that use the
    same variable.

    Attributes:
      edges: Tensors that the session computes before a call, such as those of queues and readers.
      targets: Operations that the session runs before a call.
      keys: Inputs by which workers pair the tensors to average; see `all_reduce`.
      draws_in_calls: Whether a seeded operation would draw other numbers in a larger call, since it
        has no counter that all functions share.

    Args:
      session: The session of the variables.
      given: Tensors of the graph whose values each copy receives.
      wanted: The tensors and operations to compute.
    """

    def __init__(self, session: Any, given: Sequence[Any], wanted: Wanted) -> None:
        parts, graph = session.compat_session, session.graph
        parts.extend()
        self._session, self._given, self._wanted = session, given, wanted
        known = {tensor.name for tensor in given}
        needed = Needed(wanted.tensors, wanted.operations, known).operations
        self.keys = [key for key in all_reduce.keys(graph) if key.op in needed]
        known.update(key.name for key in self.keys)
        before = {op for op in needed - parts.dependence.operations if nodes.is_input(op.type)}
        lifted = Needed(wanted.tensors, wanted.operations, known, before)
        self.edges = [lifted.edges[name] for name in sorted(lifted.edges)]
        waited = {c for op in lifted.operations for c in op.control_inputs}
        self.targets = sorted(before & {*wanted.operations, *waited}, key=lambda op: op.name)
        with graph.as_default():
            local = {variable.op.name: variable for variable in tf1.local_variables()}
        # In program order, by which TensorFlow orders reads and writes.
        operations = [op for op in graph.get_operations() if op in lifted.operations]
        self._tables = Tables(session, operations)
        self._local = {op.name: local[op.name] for op in operations if op.name in local}
        self._body, self._state = tf1.GraphDef(), tf1.GraphDef()
        names = {op.name for op in operations}
        place = parts.placing()
        self._counters: list[draws.Counter] = []
        for op in operations:
            is_source = holds_state(op) and op.outputs[0].dtype == tf.resource and not op.inputs
            if is_source and (op.name in self._local or op in self._tables):
                continue
            node = nodes.add(self._state if is_source else self._body, op, names)
            place(op, node)
            # TensorFlow 1.x's branches and loops take no handle from outside.
            counter = None if private.is_in_branch_or_loop(op) else draws.converted(op, node)
            if counter is not None:
                self._counters.append(counter)
        for described in (self._body, self._state):
            described.versions.CopyFrom(graph.graph_def_versions)
        nodes.add_functions(self._body, graph)
        nodes.register_functions(self._body)
        self.draws_in_calls = any(
            nodes.is_seeded(node) for _, body in nodes.scopes(self._body) for node in body
        )
        graphs.share(self._body, f"{uuid.uuid4().hex}/")
        homes = {node.name: node.device for node in self._state.node if node.op in VARIABLES}
        pack_messages(self._body, graph, {name: device for name, device in homes.items() if device})
        if self._counters:
            draws.add_algorithm(self._body)
        self._used = graphs.inputs(self._body)

    def writes(self, variables: Sequence[Any]) -> bool:
        """Whether a run of this part of the graph updates one of the variables."""
        return nodes.writes(self._body, [variable.op.name for variable in variables])

    def prepare(self) -> None:
        """Reads the constants of functions: tables, and initial values of local variables."""
        self._tables.read()
        for variable in self._local.values():
            self._session.first_of_local(variable)

    def resources(self) -> Mapping[str, Any]:
        """Opens the state that copies share, in a function; returns tensors by their names.

        Each worker has its own local variables, counters of random numbers, and tables.
        """
        names = [f"{node.name}:0" for node in self._state.node]
        tensors = tf1.import_graph_def(self._state, return_elements=names, name="state")
        opened = dict(zip(names, tensors))
        for name, variable in self._local.items():
            first = self._session.first_of_local(variable)
            opened[f"{name}:0"] = self._own_handle(
                name, first, variable.dtype.base_dtype, variable.shape
            )
        for counter in self._counters:
            with tf.device(counter.device or None):
                first = counter.initial()
                opened[counter.handle] = self._own_handle(
                    counter.handle, first, first.dtype, first.shape
                )
        opened.update(self._tables.opened())
        return opened

    def __call__(
        self,
        tensors: Sequence[Any],
        resources: Mapping[str, Any],
        keys: Sequence[Any] = (),
    ) -> list[Any]:
        """Copies the graph into a function; returns the values of the wanted tensors.

        Args:
          tensors: The values of `given`, followed by those of the edges.
          resources: The open resources of the function.
          keys: The values of `self.keys`.
        """
        function = tf1.get_default_graph()
        inputs = [*self._given, *self.edges, *self.keys]
        mapped = {**resources, **dict(zip([t.name for t in inputs], [*tensors, *keys]))}
        mapped = {name: function.capture(tensor) for name, tensor in mapped.items()}
        computed = [t.name for t in self._wanted.tensors if t.name not in mapped]
        run = [op.name for op in self._wanted.operations]
        outputs = dict(
            zip(
                [*computed, *run],
                tf1.import_graph_def(
                    self._body,
                    input_map={k: v for k, v in mapped.items() if k in self._used},
                    return_elements=[*computed, *run],
                    name="step",
                ),
            )
        )
        outputs.update((name, mapped[name]) for name in mapped)
        with tf.control_dependencies([outputs[name] for name in run]):
            return [_value(outputs[t.name], t) for t in self._wanted.tensors]

    def _own_handle(self, name: str, first: Any, dtype: Any, shape: Any) -> Any:
        """Returns the handle of a worker's own variable; initializes it with `first` if needed."""
        handle = tf1.raw_ops.VarHandleOp(
            dtype=dtype, shape=shape, shared_name=self._session.name_of_own(name)
        )

        def initialize() -> Any:
            tf1.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(first, dtype))
            return tf.constant(True)

        is_there = tf1.raw_ops.VarIsInitializedOp(resource=handle)
        tf.cond(is_there, lambda: tf.constant(True), initialize)
        return handle

    def empty(self) -> list[Any]:
        """Returns outputs for no step: zeros, with length 0 in unknown dimensions."""
        return [
            tf.zeros([size or 0 for size in t.shape] if t.shape.rank is not None else [], t.dtype)
            for t in self._wanted.tensors
        ]


def _value(tensor: Any, like: Any) -> Any:
    """Returns the value that a session returns for a tensor, or for a variable's handle."""
    if like.dtype == tf.resource and like.op.type == "VarHandleOp":
        return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=like.op.get_attr("dtype"))
    return tf.identity(tensor)
