"""Variables of TF1 model code on the modern runtime: their names, and the servers they are on."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterable, Iterator, Mapping

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.checkpoint import pieces
from compat.errors import UserError
from compat.runtime.graphs.nodes import is_seeded
from compat.runtime.modern.hook_graph import eagerly


class Placement:
    """Where variables are made: as a v1 graph would have named and placed them.

    For each its handle operation is also made in a graph of our own, under the v1 device function,
    which gives the name (made unique as in a v1 program, so checkpoints agree) and the device (so
    every argument of `replica_device_setter` means the same on both runtimes). The variable is a
    plain one: inside `strategy.scope()` the v1 optimizers refuse to work.
    """

    def __init__(self, outside: Iterable[Any] = ()) -> None:
        # All but the local ones by name, without the ":0".
        self.variables: dict[str, Any] = {}
        # Of the collection LOCAL_VARIABLES, which no server stores: each worker has its own, and
        # these hold the initial values.
        self.local_variables: list[Any] = []
        # What a task of a cluster has made outside of all scopes: this process's own.
        self.outside = list(outside)
        self.global_step: Any = None  # Once the program has made it.
        self.next_seed = 0  # How far the graphs of steps have counted what draws.
        self.sessions = 0  # Counts those that were opened.
        # Each variable, and its initial value or what makes that.
        self._first: list[tuple[Any, Any]] = []
        self._variable_store: list[Any] = []
        self._scope_counts: dict[str, int] = {}
        self._names: set[str] = set()  # Of the operations and scopes of all graphs so far.
        self._slices: dict[str, Any] = {}
        self._by_row: set[int] = set()  # The handles of variables of which graphs use rows.
        self._graph = tf1.Graph()
        self._setters: list[Any] = []
        self._device = ""
        self._open = 0
        self._is_local = False

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

    def create_anywhere(self, alone: bool, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Makes a variable; a process `alone` counts in also one outside of all scopes."""
        if self._open or not tf.executing_eagerly():
            return next_creator(**kwargs)
        if alone:
            return self._create(next_creator, **kwargs)
        self.outside.append(next_creator(**kwargs))
        return self.outside[-1]

    @contextlib.contextmanager
    def graph_scope(self) -> Iterator[None]:
        """Makes the default graph know what was made so far; for the inside of a lift.

        So names are those of one graph: a second layer without a name has weights of its own.
        """
        graph = tf1.get_default_graph()
        for name in sorted({*self._names, *_with_scopes(self.variables)}):
            graph.unique_name(name)
        private.scope_counts().update(self._scope_counts)
        private.variable_store().extend(self._variable_store)
        known, keys = list(self.variables.values()), tf1.GraphKeys
        for key, members in (
            (keys.GLOBAL_VARIABLES, known),
            (keys.TRAINABLE_VARIABLES, [variable for variable in known if variable.trainable]),
            (keys.LOCAL_VARIABLES, self.local_variables),
            (keys.GLOBAL_STEP, [] if self.global_step is None else [self.global_step]),
        ):
            tf1.get_collection_ref(key).extend(members)
        # Here, for the creator of `wrap_function` keeps the collections to itself.
        with tf.variable_creator_scope(self._note_collections):
            yield
        self._variable_store = list(private.variable_store())
        self._names |= _with_scopes(operation.name for operation in graph.get_operations())

    def note_scopes(self) -> None:
        """Remembers how often variable scopes were opened; called before the outermost closes."""
        self._scope_counts = dict(private.scope_counts())

    @contextlib.contextmanager
    def local_scope(self) -> Iterator[None]:
        """Makes variables of each worker's own, also outside of a lifted function."""
        before, self._is_local = self._is_local, True
        try:
            yield
        finally:
            self._is_local = before

    def _note_collections(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        # `dynamic_rnn` asks by a function, which eager mode does not take; it changes no value.
        kwargs.pop("caching_device", None)
        if tf.executing_eagerly():
            # Where optimizers make what belongs to no variable. `wrap_function` takes two of one
            # name for one; `_create` makes names unique, but later.
            name = full_name(kwargs.get("name"))
            kwargs["name"] = self._graph.unique_name(name, mark_as_used=False) + "/"
        if tf1.GraphKeys.LOCAL_VARIABLES not in (kwargs.get("collections") or ()):
            return next_creator(**kwargs)
        with self.local_scope():
            return next_creator(**kwargs)

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        initial = first = kwargs.get("initial_value")
        if "use_resource" in kwargs:  # TensorFlow's own old functions leave it to the mode.
            kwargs["use_resource"] = True
        if tf.is_tensor(initial) and not hasattr(initial, "numpy"):
            # A 2016 program's `tf.Variable(tf.random_normal(...))`, inside the lifted function.
            initial = first = kwargs["initial_value"] = _evaluate(initial)
        elif callable(initial):
            first = functools.partial(_as_drawn_in_a_graph, initial, kwargs.get("dtype"))
        if self._is_local:
            with tf.device(None):
                variable = _made(next_creator, first, kwargs)
            self.local_variables.append(variable)
            self._first.append((variable, first))
            return variable
        shape, dtype = _shape_and_dtype(initial, kwargs)
        here = _current_device()
        if here == self._device:
            here = ""  # Only our own scopes ask for it, and they are asked below.
        name, device = self._name_and_place(full_name(kwargs.get("name")), shape, dtype, here)
        with tf.device(device or None):
            variable = _made(next_creator, first, kwargs)
        self.variables[name] = variable
        self._first.append((variable, first))
        # As in a default session, also from within the graph of hooks.
        variable.eval = lambda session=None: eagerly(variable.numpy)
        private.on_slice_info(variable, functools.partial(self._slices.__setitem__, name))
        return variable

    def note_tables(self, graph: Any) -> None:
        """Remembers of which variables a function reads or writes rows."""
        self._by_row.update(
            id(outer) for outer, inner in graph.captures if pieces.is_by_row(inner.consumers())
        )

    def is_table(self, variable: Any) -> bool:
        """Whether a step reads or writes rows of a variable, and not the whole."""
        return id(variable.handle) in self._by_row

    def begin_session(self, is_chief: bool) -> None:
        """Gives the variables their initial values, as a new session does; a worker local ones."""
        self.sessions += 1
        local = set(map(id, self.local_variables))
        for variable, value in self._first if self.sessions > 1 else ():
            if not (is_chief or id(variable) in local):
                continue
            with tf.device(variable.device):
                while callable(value):
                    value = value()
                variable.assign(tf.convert_to_tensor(value, variable.dtype))

    def begins_infinite(self, variable: Any) -> bool:
        """Whether infinity is in its initial value: in that of a best loss, not of a weight."""
        for known, value in self._first:
            if known is variable:
                while callable(value):
                    value = value()
                return bool(np.isinf(np.asarray(value)).any())
        return False

    def slices(self) -> dict[str, Any]:
        """Returns the `SaveSliceInfo` of each part of a variable and of its slots, by name."""
        found = dict(self._slices)
        for name, part in self._slices.items():
            places = part.full_shape, part.var_offset, part.var_shape
            for slot, variable in self.variables.items():
                rank = variable.shape.rank
                if rank and slot.startswith(name + "/"):
                    whole = part.full_name + slot[len(name) :]
                    found[slot] = type(part)(whole, *[place[:rank] for place in places])
        return found

    def _name_and_place(self, name: str, shape: Any, dtype: Any, here: str) -> tuple[str, str]:
        """Makes the handle in our graph; returns its unique name and its device."""
        # Placed already, such as beside its variable by an optimizer? The v1 setter is not asked
        # then either, so its count goes on undisturbed.
        setters = [*self._setters, None, here] if here else self._setters
        with self._graph.as_default(), contextlib.ExitStack() as scopes:
            for setter in setters:
                scopes.enter_context(tf1.device(setter))
            handle = tf1.raw_ops.VarHandleOp(dtype=dtype, shape=shape, name=name)
        return handle.op.name, handle.op.device


def _made(next_creator: Callable[..., Any], first: Any, kwargs: dict[str, Any]) -> Any:
    """Makes a variable; its initial value is computed where it is stored, and not sent there."""
    if callable(first):
        kwargs["initial_value"] = first()
    return next_creator(**kwargs)


def _with_scopes(names: Iterable[str]) -> set[str]:
    """Returns names and those of the scopes that they are in."""
    found: set[str] = set()
    for name in names:
        parts = name.split("/")
        found.update("/".join(parts[: i + 1]) for i in range(len(parts)))
    return found


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
    with tf1.Graph().as_default() if callable(initial) else contextlib.nullcontext():
        value = initial() if callable(initial) else initial
        value = tf.convert_to_tensor(value, dtype=kwargs.get("dtype"))
    return value.shape, value.dtype


def _as_drawn_in_a_graph(initial: Callable[[], Any], dtype: Any) -> Any:
    """Returns the value that a graph would draw by an operation's seed, or else `initial`.

    In eager mode operations of one seed are one, which draws other numbers each time.
    """
    seed, _ = tf1.get_seed(1)
    with tf1.Graph().as_default() as graph:
        try:
            initial()
        except Exception:  # It is of eager mode only, or fails there as well.
            return initial
        if not any(map(is_seeded, graph.as_graph_def().node)):
            return initial
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        tf1.set_random_seed(seed)
        return session.run(tf.convert_to_tensor(initial(), dtype=dtype))


def _evaluate(tensor: Any) -> np.ndarray:
    """Computes a tensor of the graph that is being built, apart from that graph."""
    whole = tensor.graph.as_graph_def()
    part = tf1.graph_util.extract_sub_graph(whole, [tensor.op.name])
    for node in part.node:
        node.device = ""  # Such as that of a task, whose server does not compute it.
    inputs = [node.name for node in part.node if node.op == "Placeholder"]
    if inputs:
        raise UserError(
            f"the initial value {tensor.name} of a variable depends on the input {inputs[0]}; "
            "make it from constants or random numbers"
        )
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        (value,) = tf1.import_graph_def(part, return_elements=[tensor.name], name="")
        return np.asarray(session.run(value))
