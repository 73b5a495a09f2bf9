"""Uses private parts of TensorFlow; no other file of this project does.

Each docstring says what happens if a later TensorFlow lacks the private part. All parts exist from
1.15 to 2.21, unless a function names other releases.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
import threading
import types
from typing import Any, Callable, Iterator, Sequence

from compat._tensorflow.release import coordinator_module, tf, tf1

_VARIABLE_SCOPE = "tensorflow.python.ops.variable_scope"


def monitored_base() -> Any:
    """Returns the base of `MonitoredSession` and of `SingularMonitoredSession`.

    If a release has another base class there, our constructors raise `TypeError`.
    """
    return tf1.train.MonitoredSession.__mro__[1]


def session_interface() -> Any:
    """Returns the base of `tf.Session` that a `Saver` requires of a session.

    If a release requires another class, `Saver.save` raises `TypeError`.
    """
    return tf1.Session.__mro__[-2]


def poll_every(manager: Any, default_secs: int, seconds: int) -> None:
    """Makes a session manager poll every `seconds`, if it polls at TensorFlow's default interval.

    If the manager's private attribute is missing, raises `AttributeError`.
    """
    if manager._recovery_wait_secs == default_secs:
        manager._recovery_wait_secs = seconds


def device_filters(session: Any) -> list[str]:
    """Returns the device filters in a session's config.

    If the private attribute for the config is missing, raises `AttributeError`.
    """
    return list(session._config.device_filters)


def is_closed(session: Any) -> bool:
    """Whether `close` of a session was called; False if the private attribute is missing."""
    return bool(getattr(session, "_closed", False))


def creator_arguments(creator: Any) -> dict[str, Any]:
    """Returns the arguments of one of TensorFlow's session creators, which are its attributes.

    If these have other names, the session has the default arguments.
    """
    return {name.lstrip("_"): value for name, value in vars(creator).items()}


def bulk_saver_builder() -> Any:
    """Returns the class that builds a `Saver`'s operations.

    If the private class is missing, no runtime of this project can be imported.
    """
    return importlib.import_module("tensorflow.python.training.saver").BulkSaverBuilder


def expect_single_steps(hook: Any) -> None:
    """Makes a `CheckpointSaverHook` assume that a call of `run` is one step.

    The hook then reads the global step only when a checkpoint may be due. If its private method is
    missing, raises `AttributeError`.
    """
    hook._set_steps_per_run(1)  # Only TPUs set more, later, for calls of several steps.


def write_graph(supervisor: Any) -> None:
    """Makes TensorFlow's supervisor write its graph to its log folder.

    If the private method is missing, raises `AttributeError`.
    """
    supervisor._write_graph()


def forget_graph(supervisor: Any) -> None:
    """Makes a supervisor write its graph to the next event file.

    If the attribute is missing, only the first event file has the graph.
    """
    supervisor._graph_added_to_summary = False


@contextlib.contextmanager
def extendable(graph: Any) -> Iterator[None]:
    """Returns a context that allows adding operations to a graph, even if the graph is final.

    Supervisors make graphs final so that no program adds operations at each step. If the private
    method is missing, raises `AttributeError` for a final graph.
    """
    final = graph.finalized
    if final:
        graph._unsafe_unfinalize()
    try:
        yield
    finally:
        if final:
            graph.finalize()


def unchanged(graph: Any) -> Any:
    """Returns a context inside which no thread adds operations to a graph.

    If the graph's private method is missing, raises `AttributeError`.
    """
    return graph._session_run_lock()


def slice_info(variable: Any) -> Any:
    """Returns the `SaveSliceInfo` of a part of a partitioned variable; None for a whole variable.

    If the private attribute is missing, a part is saved as a separate variable.
    """
    return getattr(variable, "_save_slice_info", None)


def listed_by(saver: Any) -> Any:
    """Returns the variables of a saver, as a list or as a dict by name.

    If the attribute is missing, this returns [], and only TensorFlow's own error reports that a
    checkpoint is of another program.
    """
    return getattr(saver, "_var_list", None) or []


def set_slice_info(variable: Any, part: Any) -> None:
    """Makes savers save a variable as `part`, the `SaveSliceInfo` of a part of a partitioned one.

    If the private method is missing, raises `AttributeError`.
    """
    variable._set_save_slice_info(part)


def sum_of_workers(tensor: Any, workers: int, group: int, key: Any) -> Any:
    """Returns the sum of the workers' tensors, which TensorFlow matches by their common key.

    `MultiWorkerMirroredStrategy` uses the same operation, but chooses keys only in functions of
    TensorFlow 2, so the caller passes the key here. If the operation is missing, raises
    `AttributeError`.

    Args:
      tensor: The tensor of this worker.
      workers: The number of workers.
      group: A number for the group of workers.
      key: An int32 scalar, the same on all workers, and different for each sum.
    """
    sum_up: Any = tf.raw_ops.CollectiveReduceV2
    more: dict[str, Any] = (
        {"ordering_token": []} if "ordering_token" in inspect.signature(sum_up).parameters else {}
    )
    return sum_up(
        input=tensor,
        group_size=workers,
        group_key=group,
        instance_key=key,
        merge_op="Add",
        final_op="Id",
        **more,
    )


def register_function(definition: Any) -> None:
    """Registers a `FunctionDef` in this process and on all servers, unless its name is registered.

    TensorFlow registers the functions that it traces, but not those of a `GraphDef`'s library. If
    the method is missing, a step that calls a function raises `AttributeError`.
    """
    context: Any = importlib.import_module("tensorflow.python.eager.context").context()
    if not context.has_function(definition.signature.name):
        context.add_function_def(definition)


def keep_functions() -> None:
    """Keeps traced functions on servers, and in memory, after Python has deleted them.

    Removing a function logs an error if a server has exited, and blocks forever if a server does
    not answer. If the method is gone, TensorFlow does not remove functions.
    """
    context: Any = importlib.import_module("tensorflow.python.eager.context")
    if hasattr(context.Context, "remove_function"):
        context.Context.remove_function = lambda self, name: None


def run_threads_eagerly() -> None:
    """Makes the threads of coordinators run functions eagerly, although this process builds graphs.

    By default threads have the mode of the process. If TensorFlow's coordinator creates its threads
    in another way, a step of a cluster fails with an error about a graph.
    """
    module: Any = sys.modules[coordinator_module().ClusterCoordinator.__module__]

    class EagerThread(threading.Thread):
        def run(self) -> None:
            with eager_mode():
                super().run()

    if isinstance(module.threading, types.ModuleType):
        module.threading = types.SimpleNamespace(**{**vars(threading), "Thread": EagerThread})


def per_worker_values(coordinator: Any, make: Callable[[], Any], spec: Any = None) -> Any:
    """Calls `make` for each worker; returns the results as one argument of a scheduled function.

    `make` is called in this process, in the scope of the worker's device, and again for a worker
    that was replaced. `spec` is the type of its result, by default an int64 scalar. The public
    function `create_per_worker_dataset` calls its function once for all workers, so it cannot give
    each worker its own shard (2.4 to 2.21). If the private function is removed, a step with a
    dataset fails with an `AttributeError`.
    """
    values = coordinator._create_per_worker_resources(make)
    spec = tf.TensorSpec([], tf.int64) if spec is None else spec
    for value in values._values:
        if hasattr(value, "_set_type_spec"):  # Releases until about 2.5 lack it.
            value._set_type_spec(spec)
        else:
            value._type_spec = spec
    return values


def device_of(result: Any) -> str:
    """Returns the device on which a scheduled function ran; empty if it is unknown."""
    # The first name is that of 2.4, the second that of later releases.
    values = tf.nest.flatten(getattr(result, "_values", getattr(result, "_value", None)))
    return str(getattr(values[0], "device", ""))


@functools.lru_cache(maxsize=None)  # Once per process, even if it connects several times.
def give_back_steps() -> None:
    """Lets another worker run the step of a worker that is lost while its iterators are created.

    In TensorFlow 2.4 to 2.10 the step waits until the lost worker is back. If
    `_maybe_rebuild_remote_values` is missing, this fault is fixed, and nothing is changed.
    """
    module: Any = sys.modules[coordinator_module().ClusterCoordinator.__module__]
    check = getattr(module, "_maybe_rebuild_remote_values", None)
    if check is None:
        return

    def rebuild(worker: Any, value: Any) -> None:
        if getattr(getattr(value, "_status", None), "name", "") == "ABORTED":
            # The error of this call returns the step; `check` would wait.
            value._rebuild_on(worker)

    def rebuild_and_check(worker: Any, values: Any) -> Any:
        tf.nest.map_structure(functools.partial(rebuild, worker), values)
        return check(worker, values)

    module._maybe_rebuild_remote_values = rebuild_and_check


def before_reset(coordinator: Any, wait: Callable[[], None]) -> None:
    """Makes a coordinator call `wait` before it resets the connections to its cluster.

    TensorFlow 2.4 deletes the objects of the connections as soon as a worker is lost. An operation
    that runs at that moment, such as a read of a variable, may crash the process. Later releases
    delete nothing. If the attribute `cluster` is missing, as there, this does nothing.
    """
    if not hasattr(coordinator, "cluster"):
        return
    module: Any = sys.modules[type(coordinator.cluster).__module__]
    context = module.context.context()
    reset = context.update_server_def

    def wait_and_reset(*args: Any, **kwargs: Any) -> None:
        wait()
        reset(*args, **kwargs)

    context.update_server_def = wait_and_reset


def profile_class() -> Any:
    """Returns the protobuf of a profile, `XSpace`, which has no public name.

    Until about 2.16 it is in `tensorflow.core`, later in `tensorflow.tsl`. If it is in neither,
    profiles have no summary.
    """
    for package in ("core", "tsl"):
        with contextlib.suppress(ImportError):
            name = f"tensorflow.{package}.profiler.protobuf.xplane_pb2"
            return importlib.import_module(name).XSpace
    return None


def accept_unused() -> None:
    """Stops TensorFlow's log lines about operations that a program creates and never uses.

    If the private function is missing, they are still logged; without its module, this raises
    `ImportError`.
    """
    should_use: Any = importlib.import_module("tensorflow.python.util.tf_should_use")
    should_use._add_should_use_warning = lambda value, *args, **kwargs: value


def shapes_and_seeds() -> tuple[Any, ...]:
    """Returns the private modules that define `Dimension` and `get_seed`.

    If one of them is missing, raises `ImportError`.
    """
    framework = "tensorflow.python.framework."
    return tuple(importlib.import_module(framework + n) for n in ("tensor_shape", "random_seed"))


def event_writers() -> tuple[Any, ...]:
    """Returns the modules that define or use `EventFileWriter`.

    Raises `ImportError` if one of them is missing.
    """
    writer = "tensorflow.python.summary.writer."
    return tuple(importlib.import_module(writer + n) for n in ("event_file_writer", "writer"))


def automatic_control_dependencies() -> Any:
    """Returns a context whose stateful operations run in the order in which they are created.

    If TensorFlow's module for it is missing, raises `ImportError`.
    """
    name = "tensorflow.python.framework.auto_control_deps"
    return importlib.import_module(name).AutomaticControlDependencies()


def saved_model_builder() -> Any:
    """Returns the class that writes a SavedModel.

    If the private class is missing, raises `AttributeError`.
    """
    return importlib.import_module("tensorflow.python.saved_model.builder_impl")._SavedModelBuilder


def current_variable_store() -> Any:
    """Returns the store in which `get_variable` finds and creates variables.

    If TensorFlow's private function is missing, raises `AttributeError`.
    """
    return importlib.import_module(_VARIABLE_SCOPE)._get_default_variable_store()


def with_variable_store(store: Any) -> Any:
    """Returns a context in which `get_variable` uses `store`.

    If TensorFlow's private function is missing, raises `AttributeError`.
    """
    return importlib.import_module(_VARIABLE_SCOPE).with_variable_store(store)


def forget_eager_default() -> None:
    """Makes `tf.init_scope` in a branch or loop mean the program's graph, not eager execution.

    TensorFlow's context stores the default mode when it is created. If a program uses `tf.config`
    before it disables eager execution, the stored mode is wrong. If the private class for it is
    missing, raises `AttributeError`.
    """
    context = importlib.import_module("tensorflow.python.eager.context")
    current = context.context_safe()
    if current is not None:
        current._context_switches = context._ContextSwitchStack(False)


def _leave_devices_out_of_functions() -> None:
    """Makes functions in graphs, such as those of `Dataset.map`, ignore the devices around them.

    TensorFlow 2 traces functions this way in eager mode. The operations of a function then run on
    the device of the operation that calls it. Otherwise device functions such as
    `replica_device_setter` would place them on tasks that a session in this process does not have.
    If a replaced function is missing, raises `AttributeError`.
    """
    functions: Any = importlib.import_module("tensorflow.python.framework.func_graph")
    assert callable(functions.device_stack_has_callable)
    functions.device_stack_has_callable = lambda stack: False
    # `tf.cond` and `tf.while_loop` copy their branches and bodies in any case.
    name = "tensorflow.python.ops.control_flow_v2_func_graphs"
    graphs: Any = importlib.import_module(name).ControlFlowFuncGraph
    begin = graphs.__init__

    @functools.wraps(begin)
    def begin_without(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        self._device_function_stack = type(self._device_function_stack)()
        outside = self.outer_graph
        while isinstance(outside, graphs):
            outside = outside.outer_graph
        # Skip functions with tasks of their own.
        self.compat_is_of_program = not isinstance(outside, graphs.__mro__[1])

    # Operations in the function also ignore the task of a variable that they are colocated with.
    create = graphs._create_op_internal

    @functools.wraps(create)
    def create_without(self: Any, *args: Any, **kwargs: Any) -> Any:
        op = create(self, *args, **kwargs)
        if self.compat_is_of_program and "/job:" in op.device:
            op._set_device("")
        return op

    graphs.__init__ = begin_without
    graphs._create_op_internal = create_without


def sessions_are_replaced() -> bool:
    """Returns whether `replace_in_sessions` was called.

    If TensorFlow's module of sessions is missing, raises `ImportError`.
    """
    return hasattr(_base_session(), "compat_session")


def replace_in_sessions(session: Any) -> None:
    """Makes each session of TensorFlow run its calls by an object of the class `session`.

    The replaced methods of TensorFlow are the same from 2.4 to 2.21. If one of them is missing,
    `compat run --runtime=modern` fails with an `AttributeError`.

    Args:
      session: A class such as `GraphSession`, created from a session's target and graph. It has the
        attribute `target`, and the methods `extend()`, `cancel()`, `close()` and
        `run(in_session, fetches, operations, fed, options)`. If `run` returns None, TensorFlow's
        session runs the call.
    """
    base = _base_session()
    init, extend, close = base.__init__, base._extend_graph, base.close
    base.compat_session = None
    _leave_devices_out_of_functions()

    def open_session(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        graph = tf1.get_default_graph() if graph is None else graph
        self.compat_session = session(target, graph)
        opened = self.compat_session.target
        init(self, opened, graph, config)
        if opened != target:  # The program reads the target that it has passed.
            self._target = target.encode() if isinstance(target, str) else target

    def extend_graph(self: Any) -> None:
        self.compat_session.extend()
        extend(self)

    def close_session(self: Any) -> None:
        if self.compat_session is not None:
            self.compat_session.cancel()
        close(self)
        if self.compat_session is not None:
            self.compat_session.close()

    base.__init__, base._extend_graph, base.close = open_session, extend_graph, close_session
    _ask_in_calls()


def before_calls(
    called: Callable[..., Any],
    other: Callable[..., None],
    closed: Callable[..., None],
    left: Callable[..., None],
) -> None:
    """Makes all sessions of TensorFlow call the given functions before their own methods.

    If a method is missing, this fails with an `AttributeError`.

    Args:
      called: Called before `Session.run` makes a call, as
        `called(session, now, tensors, operations, feeds, has_options)`. `feeds` has the fed values
        by tensor, `now(tensors, operations)` makes a call with these feeds, and `has_options` is
        true for a call with `RunOptions` or `RunMetadata`. If `called` returns the values of
        `tensors`, they replace the call; if it returns None, the call is made.
      other: Called before a partial run, with the session and the arguments.
      closed: Called with a session before it is closed.
      left: Called with a session and the arguments of its `__exit__`, which may close it in another
        thread.
    """
    base = _base_session()
    base.compat_called = staticmethod(called)
    _ask_in_calls()
    _call_before(base, "_call_tf_sessionprun", other)
    _call_before(base, "close", closed)
    _call_before(tf1.Session, "__exit__", left)


def _call_before(owner: Any, name: str, before: Callable[..., None]) -> None:
    """Replaces a method by one that first calls `before` with the object and positional arguments.

    Raises `AttributeError` if the method is missing.
    """
    method = getattr(owner, name)

    @functools.wraps(method)
    def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
        before(self, *args)
        return method(self, *args, **kwargs)

    setattr(owner, name, replaced)


def _object_of(graph: Any, element: Any) -> Any:
    """Returns the Python tensor or operation for a C++ object of TensorFlow, from a cache.

    TensorFlow looks the object up by its name, which takes 20 us while other threads use the GIL.
    If a private method is missing, raises `AttributeError`.
    """
    if not hasattr(graph, "compat_objects"):
        graph.compat_objects = {}
    known = graph.compat_objects.get(id(element))
    if known is None:
        is_tensor = hasattr(element, "oper")
        find = graph._get_tensor_by_tf_output if is_tensor else graph._get_operation_by_tf_operation
        # With the object itself, so that no later one has its id.
        known = graph.compat_objects[id(element)] = find(element), element
    return known[0]


@functools.lru_cache(maxsize=None)
def _ask_in_calls() -> None:
    """Makes sessions call the functions of `before_calls` and `replace_in_sessions`, in this order.

    If `_call_tf_sessionrun` is missing, this raises `AttributeError`; if it has other arguments,
    calls of sessions raise `TypeError`.
    """
    base = _base_session()
    call = base._call_tf_sessionrun
    read_buffer = importlib.import_module(base.__module__).tf_session.TF_GetBuffer

    def run(self: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
        of = functools.partial(_object_of, self.graph)
        tensors, operations = [*map(of, fetches)], [*map(of, targets)]
        fed = {of(key): value for key, value in feeds.items()}

        def in_session(tensors: Sequence[Any], operations: Sequence[Any]) -> Any:
            outputs, ops = [t._as_tf_output() for t in tensors], [o._c_op for o in operations]
            return call(self, options, feeds, outputs, ops, metadata)

        def now(tensors: Sequence[Any], operations: Sequence[Any]) -> Any:
            run_options = (
                None if options is None else tf1.RunOptions.FromString(read_buffer(options))
            )
            own_session = getattr(self, "compat_session", None)
            results = own_session and own_session.run(
                in_session, tensors, operations, fed, run_options
            )
            return in_session(tensors, operations) if results is None else results

        called = getattr(base, "compat_called", None)
        if called is not None:
            has_options = options is not None or metadata is not None
            results = called(self, now, tensors, operations, fed, has_options)
            if results is not None:
                return results
        return now(tensors, operations)

    base._call_tf_sessionrun = run


def fetch_handler(graph: Any, fetches: Any) -> Any:
    """Returns TensorFlow's object that flattens fetches and restores their structure in results.

    If its private class is missing, raises `AttributeError`.
    """
    return importlib.import_module(_base_session().__module__)._FetchHandler(graph, fetches, {})


def run_handled(session: Any, handler: Any, fed: dict[Any, Any]) -> Any:
    """Runs fetches as `Session.run` does, but with a handler that serves many calls.

    `Session.run` makes a handler for each call, which takes 1.4 ms for eighty fetches. Raises
    `AttributeError` if a method is missing.

    Args:
      session: a session of TensorFlow.
      handler: the handler of the fetches, from `fetch_handler`.
      fed: the arrays to feed, by tensor.
    """
    feeds = {t.ref() if hasattr(t, "ref") else t: array for t, array in fed.items()}
    values = session._do_run(None, handler.targets(), handler.fetches(), feeds, None, None)
    return handler.build_results(session, values)


def before_summaries(
    written: Callable[[Sequence[Any], Callable[..., Any]], None], other: Callable[..., None]
) -> None:
    """Makes TensorFlow's summary writers call `written` instead of writing a summary at once.

    If their module is missing, this fails with an `ImportError`.

    Args:
      written: Called as `written([summary, step], write)`; `write(summary, step)` writes a summary.
      other: Called before a writer is flushed or closed.
    """
    module = importlib.import_module("tensorflow.python.summary.writer.writer")
    kind = module.SummaryToEventTransformer
    add = kind.add_summary

    @functools.wraps(add)
    def add_summary(self: Any, summary: Any, global_step: Any = None) -> None:
        written([summary, global_step], functools.partial(add, self))

    kind.add_summary = add_summary
    _call_before(module.FileWriter, "flush", other)
    _call_before(module.FileWriter, "close", other)


def step_of_replicas(optimizer: Any) -> Any:
    """Returns a `SyncReplicasOptimizer`'s variable for its local step; None if it has none."""
    return getattr(optimizer, "_local_step", None)


def replicas_of_hook(hook: Any) -> Any:
    """Returns the `SyncReplicasOptimizer` that made a hook; None if it has none."""
    return getattr(hook, "_sync_optimizer", None)


def resource_variable() -> Any:
    """Returns the class of resource variables, eager or in graphs.

    If TensorFlow's private class is missing, raises an error.
    """
    return importlib.import_module(
        "tensorflow.python.ops.resource_variable_ops"
    ).BaseResourceVariable


def _base_session() -> Any:
    """Returns the base class of all sessions; raises `ImportError` if its module is missing."""
    return importlib.import_module("tensorflow.python.client.session").BaseSession


def eager_mode() -> Any:
    """Returns a context that enables eager execution in this thread, also in a graph's scope.

    If TensorFlow's private function is missing, raises `AttributeError`.
    """
    return importlib.import_module("tensorflow.python.eager.context").eager_mode()


def cancellation_manager() -> Any:
    """Returns an object that cancels calls of functions.

    If its private class is missing, raises `AttributeError`.
    """
    return _imported("tensorflow.python.eager.cancellation").CancellationManager()


def tensor_in_memory_of(array: Any, dtype: Any) -> Any:
    """Returns an eager tensor that shares the memory of an aligned array; copies any other array.

    If the private constructor is missing, raises `AttributeError`.
    """
    tensor, context = _eager()
    return tensor(array, context.device_name, dtype.as_datatype_enum)


def _eager() -> tuple[Any, Any]:
    """Returns the class of eager tensors, and its context; raises an error if one is missing."""
    context = _imported("tensorflow.python.eager.context").context()
    context.ensure_initialized()
    return _imported("tensorflow.python.framework.ops").EagerTensor, context


@functools.lru_cache(maxsize=None)
def _imported(name: str) -> Any:
    """Returns a module of TensorFlow; raises `ImportError` if it is missing."""
    return importlib.import_module(name)


def caller(function: Any) -> Callable[[Sequence[Any], Any], Any]:
    """Returns a function that runs a concrete function at once, also while a graph is built.

    The result is called with the input tensors and a `cancellation_manager`, and returns tensors.
    TensorFlow's own method takes 0.1 ms more, and has one cancellation manager for all threads.
    If a private part is missing, raises `AttributeError`.
    """
    execute = _imported("tensorflow.python.eager.execute").execute_with_cancellation
    inner = getattr(function, "inference_fn", None) or function._inference_function
    name = inner.name.decode() if isinstance(inner.name, bytes) else str(inner.name)
    captured, count = list(function.captured_inputs), len(function.outputs)

    def call(arguments: Sequence[Any], cancellation: Any) -> Any:
        context = _eager()[1]
        options = context.function_call_options
        config = options.config_proto_serialized
        attributes = ("executor_type", options.executor_type or "", "config_proto", config)
        return execute(name, count, [*arguments, *captured], attributes, context, cancellation)

    call.function = function  # type: ignore[attr-defined]  # TensorFlow removes it with its object.
    return call


def set_device(op: Any, device: str) -> None:
    """Changes the device of an operation that no session has run yet.

    If the operation's private method is missing, raises `AttributeError`.
    """
    op._set_device(device)


def control_outputs(op: Any) -> list[Any]:
    """Returns the operations that have a control dependency on this one.

    If the private attribute is missing, raises `AttributeError`.
    """
    return list(op._control_outputs)


def is_in_branch_or_loop(op: Any) -> bool:
    """Returns whether an operation is inside a `cond` or a loop of TensorFlow 1.x.

    If the operation's private method is missing, raises `AttributeError`.
    """
    return op._get_control_flow_context() is not None


def graph_functions(graph: Any) -> Any:
    """Returns the library of a graph's functions, or None if it has none.

    If the graph's private attribute is missing, raises `AttributeError`.
    """
    return graph.as_graph_def().library if graph._functions else None
