"""Makes sessions of TensorFlow 1.x run on variables that TensorFlow 2 stores.

TensorFlow's sessions, supervisors, monitored sessions, hooks, savers and queue runners stay as
they are. Only one method of its session is replaced, `_call_tf_sessionrun`, which runs a call after
its fetches, feeds and operations have been resolved.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import threading
import time
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs import memory, one_shot, part
from compat.runtime.graphs.dependence import Dependence, holds_state
from compat.runtime.graphs.homes import Homes

# The text that a function adds to an error message: a heading, its own name and, until about 2.6,
# the line of this package that lifted the operation.
_CANCEL_SECS = 10.0
_OF_FUNCTION = re.compile(r"\A\s*(Graph execution error:\s*)?|\s*\[Op:__\w+\][\s\S]*\Z")
_NODE = re.compile(r"\[\[node (\S+)( \(defined at [^)]*\))?\s*\]\]")
_numbers = itertools.count()


class Cluster:
    """The cluster that this process is a task of; this base class is for a process alone.

    Args:
      own_task: this process, such as "/job:worker/replica:0/task:1"; "" if it is alone.

    Attributes:
      device: the device of this process, as TensorFlow 2 names it, if it has connected with other
        tasks; else "".
      targets: the session targets that mean this process.
    """

    def __init__(self, own_task: str = "") -> None:
        self.own_task = own_task
        self.device = ""
        self.targets: set[str] = set()

    def before_session(self) -> Cluster:
        """Returns the cluster of a session that is about to be created."""
        return self

    def connect(self, tasks: set[str]) -> None:
        """Connects with tasks that store what a session needs, such as "/job:ps/.../task:0"."""


alone = Cluster()
_local_servers: set[str] = set()  # The targets of servers in no cluster.
_cluster = alone


def join(cluster: Cluster) -> None:
    """Makes this process a task of a cluster."""
    global _cluster
    _cluster = cluster


def joined() -> Cluster:
    """Returns the cluster that this process is a task of."""
    return _cluster


def share_variables(target: str) -> None:
    """Makes sessions share variables if they connect to `target`, a server in no cluster."""
    _local_servers.add(target)


def shares_variables(target: str) -> bool:
    """Whether a target is that of a server in no cluster."""
    return target in _local_servers


class _Graph:
    """The state of a graph that all of its sessions share."""

    def __init__(self, graph: Any) -> None:
        self.lock = threading.RLock()  # A program may run calls on several threads.
        self.homes = Homes(lambda: _cluster.own_task)
        self.dependence = Dependence(graph, self.homes, lambda: _cluster.own_task)
        self.started: set[bytes] = set()  # The names of iterators that have started.


class GraphSession:
    """The part of a TensorFlow session that TensorFlow 2 stores and runs.

    Args:
      target: the target of the session.
      graph: the graph of the session.

    Attributes:
      target: "" for a session that runs in this process, with variables on the cluster's servers.
    """

    def __init__(self, target: Any, graph: Any) -> None:
        text = target.decode() if isinstance(target, bytes) else target
        of_server = hasattr(graph, "compat_is_run_by_server")  # See `liveness.key_value`.
        is_member = text in _cluster.targets and not of_server
        cluster = _cluster.before_session() if is_member else alone
        is_local = text in _local_servers
        self.target = target if cluster is alone and not is_local else ""
        # Any other target is that of a server, whose sessions are TensorFlow's.
        self._is_here = not self.target
        self._graph, self._cluster = graph, cluster
        if not hasattr(graph, "compat_parts"):
            graph.compat_parts = _Graph(graph)
        self._known: _Graph = graph.compat_parts
        # In a cluster variables are shared by name. Without one, each session has its own.
        self._owner = text if is_local else f"session_{next(_numbers)}"
        self._prefix = "" if cluster.own_task else f"{self._owner}/"
        self._is_shared = is_local or bool(cluster.own_task)
        self._counters: dict[str, Any] = {}
        self._parts: dict[Any, Any] = {}
        self._waiting: set[Any] = set()  # Calls in progress.

    def extend(self) -> None:
        """Adds the operations that the program has added to its graph."""
        if not self._is_here:
            return
        with self._known.lock:
            self._known.dependence.update()

    def run(
        self,
        in_session: Any,
        fetches: Sequence[Any],
        operations: Sequence[Any],
        fed: dict[Any, Any],
        options: Any,
    ) -> list[Any] | None:
        """Runs a call; returns None if TensorFlow's session can run all of it.

        Args:
          in_session: runs tensors and operations in TensorFlow's session, with the call's feed.
          fetches: the tensors whose values are returned.
          operations: further operations that the call runs.
          fed: values by tensors.
          options: a `tf.RunOptions`, whose time limit is applied; None for none.

        Raises:
          DeadlineExceededError: the time limit has passed.
        """
        if not self._is_here:
            return None
        # The graph keeps these objects as long as it lives, and names take longer.
        key = self._known.dependence.version, *map(id, fetches), 0, *map(id, operations), 0
        key += tuple(map(id, fed))
        known_part = self._parts.get(key, self)
        if known_part is self:
            with self._known.lock:
                known_part = self._parts[key] = self._lifted(fetches, operations, fed)
        if known_part is None:
            return None
        cut, function = known_part
        values = fed
        if cut.edges or cut.targets:
            values = {**fed, **dict(zip(cut.edges, in_session(cut.edges, cut.targets)))}
        secs = 0.0
        if options is not None:
            secs = options.timeout_in_ms / 1000
            if options.trace_level:
                _say_what_is_traced()
        arguments = [_tensor(values[t], t.dtype.base_dtype) for t in cut.inputs]
        outputs = self._called(function, arguments, secs)
        return [output.numpy() for output in outputs[: len(fetches)]]

    def _called(self, call: Any, arguments: Sequence[Any], secs: float) -> Any:
        cancellation = private.cancellation_manager()  # An error cancels its call's manager.
        limit = _Limit(secs, cancellation) if secs else None
        self._waiting.add(cancellation)
        try:
            return call(arguments, cancellation)
        except tf1.errors.OpError as error:
            if limit is not None and limit.is_over:
                late = f"Timed out after {secs:g} s, the limit of tf.RunOptions"
                raise tf1.errors.DeadlineExceededError(None, None, late) from None
            raise type(error)(None, None, _of_session(error.message)) from None
        finally:
            self._waiting.discard(cancellation)
            if limit is not None:
                limit.cancel()

    @property
    def dependence(self) -> Dependence:
        """The operations of the graph that depend on variables of TensorFlow 2."""
        return self._known.dependence

    def _stores(self) -> set[str]:
        """Returns the tasks that store variables and other state of the graph."""
        return {self._known.homes.of(op) for op in self.dependence.state} - {""}

    def placing(self) -> Callable[[Any, Any], None]:
        """Returns a function that sets the task of an operation's node, and the name of its state.

        State with a name outlives the function that contains its node.
        """
        own_task = self._cluster.own_task
        return functools.partial(self._place, self._stores() - {own_task} if own_task else set())

    def _lifted(self, fetches: Any, operations: Any, fed: Any) -> Any:
        stores, place = self._stores(), self.placing()
        with private.unchanged(self._graph):
            cut = part.Part(
                self._graph, self._known.dependence, fetches, operations, list(fed), place
            )
        if cut.is_empty:
            return None
        self._cluster.connect(stores)
        with eagerly():
            for name, counter in cut.counters.items():
                if name not in self._counters:
                    with tf.device(counter.device):
                        self._counters[name] = tf.Variable(counter.initial(), name="counter")
            handles = {name: counter.handle for name, counter in self._counters.items()}
            return cut, private.caller(part.function(cut, handles, self._cluster.device))

    def _device(self, op: Any) -> str:
        home = self._known.homes.of(op) if self._cluster.own_task else ""
        return f"{home}/device:CPU:0" if home else ""

    def _name(self, op: Any) -> str:
        return self._prefix + (op.get_attr("shared_name").decode() or op.name)

    def _place(self, servers: set[str], op: Any, node: Any) -> None:
        """Sets the device and the name of a node; see `placing`.

        Operations on a variable's device stay there, where TensorFlow 1.x passes them the
        variable's memory and no copy. `SyncReplicasOptimizer` relies on this: it reads the global
        step before the update, but has to get the value after it.
        """
        if holds_state(op):
            # Without a device, TensorFlow might place the node on a server.
            node.device = self._device(op) or self._cluster.device
            if "shared_name" in node.attr:
                node.attr["shared_name"].s = self._name(op).encode()
            if op.type == one_shot.KIND:
                self._start(node)
        elif self._known.homes.of(op) in servers and not private.is_in_branch_or_loop(op):
            node.device = self._device(op)

    def _start(self, node: Any) -> None:
        """Gives a one-shot iterator a name of this session, and starts it once."""
        name = f"{self._owner}{self._cluster.own_task}/{node.name}".encode()
        node.attr["shared_name"].s = name
        if name not in self._known.started:
            self._known.started.add(name)
            with eagerly():
                one_shot.started(self._graph, node)()
        one_shot.give_name(node)

    def cancel(self) -> None:
        """Cancels the calls in progress, such as one that waits for a queue."""
        for cancellation in list(self._waiting):
            cancellation.start_cancel()

    def close(self) -> None:
        """Frees the variables, unless another session uses them; waits for the cancelled calls.

        The process aborts if Python exits while a thread of the program is still in TensorFlow. The
        session is closed before, so such a thread makes no further call.
        """
        deadline = time.monotonic() + _CANCEL_SECS
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        nodes = {
            node.name: node
            for each in self._parts.values()
            if each is not None and not self._is_shared
            for node in each[0].variables()
        }
        self._parts.clear()
        if nodes:
            with contextlib.suppress(tf1.errors.OpError), eagerly():
                part.free(list(nodes.values()))


class _Limit(threading.Timer):
    """Cancels a call after some time.

    Attributes:
      is_over: whether the time has passed, and the call is cancelled.
    """

    def __init__(self, secs: float, cancellation: Any) -> None:
        super().__init__(secs, self._end)
        self._cancellation = cancellation
        self.is_over = False
        self.start()

    def _end(self) -> None:
        self.is_over = True
        self._cancellation.start_cancel()


def _tensor(value: Any, dtype: Any) -> Any:
    """Returns an argument of a function: a copy, unless nobody can write to the array."""
    array = np.asarray(value)
    if array.dtype.hasobject or array.dtype != dtype.as_numpy_dtype:
        with eagerly():
            return tf.constant(value, dtype)
    if memory.may_change(array):
        array = array.copy()
    return private.tensor_in_memory_of(array, dtype)


@functools.lru_cache(maxsize=None)
def _say_what_is_traced() -> None:
    """Logs, once in a process, that a trace lacks the operations of functions."""
    print(
        "compat: on the modern runtime tf.RunMetadata has the part of a call that depends on no "
        "variable; trace the other part with tf.profiler, or use --runtime=legacy",
        flush=True,
    )


def _of_session(message: str) -> str:
    """Returns the error message of a function as a session would report it."""
    return _NODE.sub(r"[[{{node \1}}]]", _OF_FUNCTION.sub("", message))


_OUTSIDE: list[Any] = []


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Enables eager execution in the context, with a default graph that belongs to no program.

    TensorFlow adds operations to the default graph, and the program's own graph may be final.
    """
    if not _OUTSIDE:
        _OUTSIDE.append(tf1.Graph())
    with _OUTSIDE[0].as_default(), private.eager_mode():
        yield


def is_installed() -> bool:
    """Whether sessions of this process run graphs on variables of TensorFlow 2."""
    return private.sessions_are_replaced()


def install() -> None:
    """Makes sessions of this process run on variables of TensorFlow 2; idempotent."""
    if not is_installed():
        private.replace_in_sessions(GraphSession)
