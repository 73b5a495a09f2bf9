"""Variables of the modern runtime: named and placed as a v1 graph would, or one on each worker."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any, Callable, Iterator, Mapping

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError


class Placement:
    """Where variables are made: as a v1 graph would have named and placed them.

    For each variable its handle operation is also made in a graph of our own, under the v1 device
    function. That graph gives the name (made unique as in a v1 program, so checkpoints agree) and
    the device (so every argument and load-balancing strategy of `replica_device_setter` means the
    same on both runtimes). The variable itself is a plain one: inside `strategy.scope()` the v1
    optimizers refuse to work, and the strategy would place variables by its own count.

    Attributes:
      variables: all variables by name, without the ":0".
      global_step: the variable that counts updates, if the program has made it.
      variable_store: what `get_variable` finds its variables in, once one has been made.
      worker_variables: what the function that is being lifted has made on the workers.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.global_step: Any = None
        self.variable_store: list[Any] = []
        self.worker_variables: list[WorkerVariable] = []
        self._graph = tf1.Graph()
        self._setters: list[Any] = []
        self._device = ""
        self._open = 0

    @contextlib.contextmanager
    def scope(self, setter: Any = None) -> Iterator[None]:
        """Places variables made inside by `setter`, a device function or name; None adds none."""
        outer = self._setters, self._device
        with contextlib.ExitStack() as scopes:
            if not self._open:
                # Once even where scopes nest: the creator itself knows all setters.
                scopes.enter_context(tf.variable_creator_scope(self._create))
            if isinstance(setter, str):
                scopes.enter_context(tf.device(setter))  # Eager mode takes names only.
            self._open += 1
            if setter is not None:
                self._setters = self._setters + [setter]
            self._device = _current_device()
            try:
                yield
            finally:
                self._open -= 1
                self._setters, self._device = outer

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        initial = kwargs.get("initial_value")
        if tf.is_tensor(initial) and not hasattr(initial, "numpy"):
            # A 2016 program's `tf.Variable(tf.random_normal(...))`, inside the lifted function.
            initial = kwargs["initial_value"] = _evaluate(initial)
        shape, dtype = _shape_and_dtype(initial, kwargs)
        here = _current_device()
        if here == self._device:
            here = ""  # Only our own scopes ask for it, and they are asked below.
        name, device = self._name_and_place(full_name(kwargs.get("name")), shape, dtype, here)
        with tf.device(device or None):
            variable = next_creator(**kwargs)
        self.variables[name] = variable
        return variable

    def _name_and_place(self, name: str, shape: Any, dtype: Any, here: str) -> tuple[str, str]:
        """Makes the handle in our graph; returns its unique name and its device."""
        with self._graph.as_default(), contextlib.ExitStack() as scopes:
            for setter in self._setters:
                scopes.enter_context(tf1.device(setter))
            if here:
                # Placed already, such as beside its variable by an optimizer. The v1 setter is
                # not asked then either, so its count goes on undisturbed.
                scopes.enter_context(tf1.device(None))
                scopes.enter_context(tf1.device(here))
            handle = tf1.raw_ops.VarHandleOp(dtype=dtype, shape=shape, name=name)
        return handle.op.name, handle.op.device


def _current_device() -> str:
    """Returns the device that the surrounding scopes ask for, or "" if they ask for none."""
    if not tf.executing_eagerly():
        return str(tf.no_op().device)
    here = str(tf.zeros([]).device)
    with tf.device(None):
        default = str(tf.zeros([]).device)
    return "" if here == default else here


def full_name(name: str | None) -> str:
    """Returns a new variable's name with the scopes around it."""
    name = name or "Variable"
    if name.endswith("/"):  # Already whole, as `get_variable` hands it on.
        return name[:-1]
    if tf.executing_eagerly():
        with tf.name_scope(name) as scope:
            return str(scope)[:-1]
    scope = tf1.get_default_graph().get_name_scope()
    return f"{scope}/{name}" if scope else name


def _shape_and_dtype(initial: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    if kwargs.get("shape") is not None and kwargs.get("dtype") is not None:
        return kwargs["shape"], kwargs["dtype"]
    if callable(initial):
        with tf1.Graph().as_default():
            value = tf.convert_to_tensor(initial(), dtype=kwargs.get("dtype"))
    else:
        value = tf.convert_to_tensor(initial, dtype=kwargs.get("dtype"))
    return value.shape, value.dtype


def _evaluate(tensor: Any) -> np.ndarray:
    """Computes a tensor of the graph that is being built, apart from that graph.

    Raises:
      UserError: it depends on the step's inputs.
    """
    whole = tensor.graph.as_graph_def()
    part = tf1.graph_util.extract_sub_graph(whole, [tensor.op.name])
    inputs = [node.name for node in part.node if node.op == "Placeholder"]
    if inputs:
        raise UserError(
            f"the initial value {tensor.name} of a variable depends on the input {inputs[0]}; "
            "make it from constants or random numbers"
        )
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        (value,) = tf1.import_graph_def(part, return_elements=[tensor.name], name="")
        return np.asarray(session.run(value))


class WorkerVariable:
    """A variable of its own on each worker, inside a lifted graph; see `compat.worker_variable`.

    Each worker's resource is made by the handle operation that the worker runs. It has its first
    value when it is first read.

    Attributes:
      name: of the handle's tensor in the lifted graph.
      shape, dtype: of the value.
      shared_name: of the resource, by which all handles of a worker are the same.
    """

    def __init__(self, initial: Any, name: str) -> None:
        self._initial = np.asarray(initial)
        self.shape = self._initial.shape
        self.dtype = tf.as_dtype(self._initial.dtype)
        self.shared_name = f"{name}-{uuid.uuid4().hex}"
        self._handle = self.handle()
        self.name = self._handle.name

    def handle(self) -> Any:
        """Makes a handle in the graph at hand, for the worker that runs it."""
        return tf1.raw_ops.VarHandleOp(
            dtype=self.dtype, shape=self.shape, shared_name=self.shared_name
        )

    def read_value(self) -> Any:
        """Returns the value as a tensor."""
        handle, raw = self._handle, tf1.raw_ops

        def first() -> Any:
            initial = tf.constant(self._initial)
            with tf.control_dependencies([raw.AssignVariableOp(resource=handle, value=initial)]):
                return tf.identity(initial)

        return tf.cond(
            raw.VarIsInitializedOp(resource=handle),
            lambda: raw.ReadVariableOp(resource=handle, dtype=self.dtype),
            first,
        )

    def assign(self, value: Any) -> Any:
        """Returns the operation that gives it a value, after it has been read."""
        return tf1.raw_ops.AssignVariableOp(resource=self._handle, value=value)
