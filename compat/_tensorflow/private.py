"""Private parts of TensorFlow, each asked for here alone, and what happens where it is gone.

They exist from 1.15 to 2.21, unless a function names other releases.
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

    Where it is another class, the constructors of ours fail with a `TypeError`.
    """
    return tf1.train.MonitoredSession.__mro__[1]


def session_interface() -> Any:
    """Returns the class of a `Saver`'s sessions; where it is another, it raises a `TypeError`."""
    return tf1.Session.__mro__[-2]


def poll_every(manager: Any, default_secs: int, seconds: int) -> None:
    """Makes a session manager that polls at TensorFlow's interval poll at another one.

    Where the attribute is gone, an `AttributeError` names it.
    """
    if manager._recovery_wait_secs == default_secs:
        manager._recovery_wait_secs = seconds


def device_filters(session: Any) -> list[str]:
    """Returns those of a session's configuration; where it is gone, an `AttributeError`."""
    return list(session._config.device_filters)


def creator_arguments(creator: Any) -> dict[str, Any]:
    """Returns the arguments of one of TensorFlow's session creators, of which it is the attributes.

    Where these have other names, the session has the default arguments.
    """
    return {name.lstrip("_"): value for name, value in vars(creator).items()}


def bulk_saver_builder() -> Any:
    """Returns the class of a `Saver`'s operations; where gone, the legacy runtime fails to load."""
    return importlib.import_module("tensorflow.python.training.saver").BulkSaverBuilder


def expect_single_steps(hook: Any) -> None:
    """Makes a `CheckpointSaverHook` expect one step a call; where gone, an `AttributeError`."""
    hook._set_steps_per_run(1)  # For calls of several steps, TPUs set it later.


def write_graph(supervisor: Any) -> None:
    """Makes TensorFlow's supervisor write its graph; where that is gone, an `AttributeError`."""
    supervisor._write_graph()


def forget_graph(supervisor: Any) -> None:
    """Makes a supervisor write its graph into the next file too; where gone, only in the first."""
    supervisor._graph_added_to_summary = False


@contextlib.contextmanager
def extendable(graph: Any) -> Iterator[None]:
    """Lets a graph that a session runs take operations, also one that is final.

    Supervisors make graphs final so that no program adds operations with each update. Where the
    method is gone, a call of several updates fails with an `AttributeError`.
    """
    final = graph.finalized
    if final:
        graph._unsafe_unfinalize()
    try:
        yield
    finally:
        if final:
            graph.finalize()


def slice_info(variable: Any) -> Any:
    """Returns the `SaveSliceInfo` of a part of a partitioned variable; None of a whole one.

    Where it is gone, a part is saved as a variable of its own.
    """
    return getattr(variable, "_save_slice_info", None)


def listed_by(saver: Any) -> Any:
    """Returns the variables of a saver, as a list or by name.

    Where the list is gone, a checkpoint of another program is reported by TensorFlow.
    """
    return getattr(saver, "_var_list", None) or []


def set_slice_info(variable: Any, part: Any) -> None:
    """Makes a variable a part of a partitioned one; where that is gone, an `AttributeError`."""
    variable._set_save_slice_info(part)


def sum_of_workers(tensor: Any, workers: int, group: int, key: Any) -> Any:
    """Returns the sum of the tensors of all workers, which have a key in common.

    The operation is that of `MultiWorkerMirroredStrategy`, whose own keys are counted in a function
    of TensorFlow 2 alone. Where it is gone, an `AttributeError`.

    Args:
      tensor: of this worker.
      workers: their number.
      group: a number for the workers.
      key: an int32 scalar, another one for each sum.
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
    """Registers an untraced `FunctionDef` here and on all servers, unless it is there.

    Where the context cannot, a step that calls a function fails with an `AttributeError`.
    """
    context: Any = importlib.import_module("tensorflow.python.eager.context").context()
    if not context.has_function(definition.signature.name):
        context.add_function_def(definition)


def keep_functions() -> None:
    """Keeps traced functions on servers, and in memory, after Python has deleted them.

    To remove them logs an error for a server that has exited, and blocks forever for one that does
    not answer. Where the method is gone, nothing has to be kept.
    """
    context: Any = importlib.import_module("tensorflow.python.eager.context")
    if hasattr(context.Context, "remove_function"):
        context.Context.remove_function = lambda self, name: None


def run_threads_eagerly() -> None:
    """Makes the threads of coordinators run functions, though this process builds graphs.

    They have the mode of the process. Where their module makes its threads in another way, a step
    of a cluster fails with an error about a graph.
    """
    module: Any = sys.modules[coordinator_module().ClusterCoordinator.__module__]

    class EagerThread(threading.Thread):
        def run(self) -> None:
            with eager_mode():
                super().run()

    if isinstance(module.threading, types.ModuleType):
        module.threading = types.SimpleNamespace(**{**vars(threading), "Thread": EagerThread})


def per_worker_values(coordinator: Any, make: Callable[[], Any], spec: Any = None) -> Any:
    """Returns what `make` returns on each worker, of the type `spec`, for a scheduled function.

    `make` is called in this process once for each worker, with the worker's device around it, and
    again for one that was replaced. `create_per_worker_dataset`, the public way, calls its function
    once for all, so that none can be given its own shard (2.4 to 2.21). Where the private way is
    gone, a step with a dataset fails with an `AttributeError`.
    """
    values = coordinator._create_per_worker_resources(make)
    spec = tf.TensorSpec([], tf.int64) if spec is None else spec
    for value in values._values:
        if hasattr(value, "_set_type_spec"):  # Until 2.5 or so.
            value._set_type_spec(spec)
        else:
            value._type_spec = spec
    return values


def device_of(result: Any) -> str:
    """Returns the device of what a scheduled function returned; empty where it is not shown."""
    # By the name that 2.4 has for it, and by that of later releases.
    made = tf.nest.flatten(getattr(result, "_values", getattr(result, "_value", None)))
    return str(getattr(made[0], "device", ""))


@functools.lru_cache(maxsize=None)  # Once a process, however often it connects.
def give_back_steps() -> None:
    """Has a worker that is lost while its iterators are made give back the step it was to make.

    In TensorFlow 2.4 to 2.10 it keeps the step until it is back itself. Where the function is gone,
    that is mended.
    """
    module: Any = sys.modules[coordinator_module().ClusterCoordinator.__module__]
    check = getattr(module, "_maybe_rebuild_remote_values", None)
    if check is None:
        return

    def rebuild(worker: Any, value: Any) -> None:
        if getattr(getattr(value, "_status", None), "name", "") == "ABORTED":
            value._rebuild_on(worker)  # What it raises gives back the step; `check` would wait.

    def rebuild_and_check(worker: Any, values: Any) -> Any:
        tf.nest.map_structure(functools.partial(rebuild, worker), values)
        return check(worker, values)

    module._maybe_rebuild_remote_values = rebuild_and_check


def before_reset(coordinator: Any, wait: Callable[[], None]) -> None:
    """Has a coordinator call `wait` before it resets the connections to its cluster.

    TensorFlow 2.4 drops what belongs to them as soon as a worker is lost; whatever runs at that
    moment, such as a read of a variable, may crash the process. Where `cluster` is gone, as in
    later releases, nothing is dropped.
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

    Until 2.16 or so it is in the first module. Where it is in neither, profiles have no summary.
    """
    for package in ("core", "tsl"):
        with contextlib.suppress(ImportError):
            name = f"tensorflow.{package}.profiler.protobuf.xplane_pb2"
            return importlib.import_module(name).XSpace
    return None


def accept_unused() -> None:
    """Stops the reports of operations that were never used; where they are gone, an error."""
    should_use: Any = importlib.import_module("tensorflow.python.util.tf_should_use")
    should_use._add_should_use_warning = lambda value, *args, **kwargs: value


def shapes_and_seeds() -> tuple[Any, ...]:
    """Returns the modules of `Dimension` and of `get_seed`; where gone, an `ImportError`."""
    framework = "tensorflow.python.framework."
    return tuple(importlib.import_module(framework + n) for n in ("tensor_shape", "random_seed"))


def event_writers() -> tuple[Any, ...]:
    """Returns the modules that define and use `EventFileWriter`; where gone, an `ImportError`."""
    writer = "tensorflow.python.summary.writer."
    return tuple(importlib.import_module(writer + n) for n in ("event_file_writer", "writer"))


def automatic_control_dependencies() -> Any:
    """Returns a context in which what has state runs, in order; where gone, an `ImportError`."""
    name = "tensorflow.python.framework.auto_control_deps"
    return importlib.import_module(name).AutomaticControlDependencies()


def saved_model_builder() -> Any:
    """Returns the class that writes a SavedModel; where it is gone, an `AttributeError`."""
    return importlib.import_module("tensorflow.python.saved_model.builder_impl")._SavedModelBuilder


def current_variable_store() -> Any:
    """Returns what `get_variable` asks for variables; where it is gone, an `AttributeError`."""
    return importlib.import_module(_VARIABLE_SCOPE)._get_default_variable_store()


def with_variable_store(store: Any) -> Any:
    """Returns a context where `get_variable` asks this store; where gone, an `AttributeError`."""
    return importlib.import_module(_VARIABLE_SCOPE).with_variable_store(store)


def forget_eager_default() -> None:
    """Makes `tf.init_scope` in a branch or loop mean the program's graph, not eager execution.

    TensorFlow keeps in its context, where that was made before eager execution was disabled, as by
    `tf.config`, what was the default. Where the class is gone, an `AttributeError`.
    """
    context = importlib.import_module("tensorflow.python.eager.context")
    made = context.context_safe()
    if made is not None:
        made._context_switches = context._ContextSwitchStack(False)


def _leave_devices_out_of_functions() -> None:
    """Traces functions of graphs, as of `Dataset.map`, as TensorFlow 2 does where it runs eagerly.

    Their bodies have the devices of what calls them. Else those of device functions around, such as
    `replica_device_setter`, become part of them, which name tasks that a session in this process
    does not have. Where what is replaced is gone, an `AttributeError`.
    """
    functions: Any = importlib.import_module("tensorflow.python.framework.func_graph")
    assert callable(functions.device_stack_has_callable)
    functions.device_stack_has_callable = lambda stack: False
    # The branches and bodies of `tf.cond` and `tf.while_loop` copy them in any case.
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
        # Not of a function, which has tasks of its own.
        self.compat_is_of_program = not isinstance(outside, graphs.__mro__[1])

    # Nor do operations there have the task of a variable that they are colocated with.
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
    """Whether `replace_in_sessions` was called; where the class is gone, an `ImportError`."""
    return hasattr(_base_session(), "compat_session")


def replace_in_sessions(session: Any) -> None:
    """Makes all sessions of TensorFlow ask an object of ours what to do.

    It replaces methods that are the same from 2.4 to 2.21. Where one is gone, `compat run
    --runtime=modern` fails with an `AttributeError`.

    Args:
      session: a class, made of a session's target and graph, with `target`, `extend()`,
        `run(in_session, fetches, operations, fed, options)`, which returns None for what
        TensorFlow's session is to run, `cancel()` and `close()`.
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
        if opened != target:  # The program asks for the one that it has given.
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
    """Makes all sessions of TensorFlow ask before a call whether it is to be made now.

    Where a method is gone, it fails with an `AttributeError`.

    Args:
      called: is given the session, what runs tensors and operations in it with the call's feed,
        the tensors and operations that are fetched, the feed by tensors, and whether the call has
        options; it returns values, or None for a call that is made now.
      other: is called before a partial run.
      closed: is called with a session before that is closed.
      left: is called with a session and the arguments of its `__exit__`, which may close it in
        another thread.
    """
    base = _base_session()
    base.compat_called = staticmethod(called)
    _ask_in_calls()
    _call_before(base, "_call_tf_sessionprun", other)
    _call_before(base, "close", closed)
    _call_before(tf1.Session, "__exit__", left)


def _call_before(owner: Any, name: str, before: Callable[..., None]) -> None:
    """Calls something before a method, on its arguments; where that is gone, it fails."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
        before(self, *args)
        return method(self, *args, **kwargs)

    setattr(owner, name, replaced)


@functools.lru_cache(maxsize=None)
def _ask_in_calls() -> None:
    """Makes sessions ask what `before_calls` and `replace_in_sessions` were given, in this order.

    Where the method or its arguments have changed, it fails with an `AttributeError`.
    """
    base = _base_session()
    call = base._call_tf_sessionrun
    read_buffer = importlib.import_module(base.__module__).tf_session.TF_GetBuffer

    def run(self: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
        graph = self.graph
        tensors = [graph._get_tensor_by_tf_output(fetch) for fetch in fetches]
        operations = [graph._get_operation_by_tf_operation(target) for target in targets]
        fed = {graph._get_tensor_by_tf_output(key): value for key, value in feeds.items()}

        def in_session(tensors: Sequence[Any], operations: Sequence[Any]) -> Any:
            outputs, ops = [t._as_tf_output() for t in tensors], [o._c_op for o in operations]
            return call(self, options, feeds, outputs, ops, metadata)

        def now(tensors: Sequence[Any], operations: Sequence[Any]) -> Any:
            given = None if options is None else tf1.RunOptions.FromString(read_buffer(options))
            own = getattr(self, "compat_session", None)
            found = own and own.run(in_session, tensors, operations, fed, given)
            return in_session(tensors, operations) if found is None else found

        called = getattr(base, "compat_called", None)
        if called is not None:
            has_options = options is not None or metadata is not None
            found = called(self, now, tensors, operations, fed, has_options)
            if found is not None:
                return found
        return now(tensors, operations)

    base._call_tf_sessionrun = run


def before_summaries(
    written: Callable[[Sequence[Any], Callable[..., Any]], None], other: Callable[..., None]
) -> None:
    """Makes writers of TensorFlow ask before they write a summary when to do so.

    Where their module is gone, it fails with an `ImportError`.

    Args:
      written: is given a summary and its step, and what writes these two.
      other: is called before a writer is flushed or closed.
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
    """Returns the local variable of a `SyncReplicasOptimizer`; None where it has none, as ours."""
    return getattr(optimizer, "_local_step", None)


def resource_variable() -> Any:
    """Returns the class of resource variables, also of graphs; where it is gone, it fails."""
    return importlib.import_module(
        "tensorflow.python.ops.resource_variable_ops"
    ).BaseResourceVariable


def _base_session() -> Any:
    """Returns the class of all sessions; where it is gone, an `ImportError`."""
    return importlib.import_module("tensorflow.python.client.session").BaseSession


def eager_mode() -> Any:
    """Returns a context that enables eager execution in this thread, also in a graph's scope.

    Where it is gone, an `AttributeError`.
    """
    return importlib.import_module("tensorflow.python.eager.context").eager_mode()


def cancellation_manager() -> Any:
    """Returns what cancels calls of functions; where it is gone, an `AttributeError`."""
    return _imported("tensorflow.python.eager.cancellation").CancellationManager()


def tensor_in_memory_of(array: Any, dtype: Any) -> Any:
    """Returns an eager tensor that has the memory of an array, if that is aligned; else a copy.

    Where the constructor is gone, an `AttributeError`.
    """
    tensor, context = _eager()
    return tensor(array, context.device_name, dtype.as_datatype_enum)


def _eager() -> tuple[Any, Any]:
    """Returns the class of eager tensors, and the context; where one is gone, it fails."""
    context = _imported("tensorflow.python.eager.context").context()
    context.ensure_initialized()
    return _imported("tensorflow.python.framework.ops").EagerTensor, context


@functools.lru_cache(maxsize=None)
def _imported(name: str) -> Any:
    """Returns a module; where it is gone, an `ImportError`."""
    return importlib.import_module(name)


def caller(function: Any) -> Callable[[Sequence[Any], Any], Any]:
    """Returns a function that calls a concrete function, in whatever mode its thread is.

    It takes tensors and the call's `cancellation_manager`, and returns tensors. A call by
    TensorFlow's own method takes 0.1 ms more, and all threads share its cancellation manager. Where
    a part of TensorFlow is gone, an `AttributeError`.
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

    Where the method is gone, an `AttributeError`.
    """
    op._set_device(device)


def control_outputs(op: Any) -> list[Any]:
    """Returns the operations that wait for this one; where that is gone, an `AttributeError`."""
    return list(op._control_outputs)


def is_in_branch_or_loop(op: Any) -> bool:
    """Whether an operation is inside a `cond` or a loop of TensorFlow 1.x.

    Where the method is gone, an `AttributeError`.
    """
    return op._get_control_flow_context() is not None


def graph_functions(graph: Any) -> Any:
    """Returns the library of a graph's functions, or None if it has none.

    Where the attribute is gone, an `AttributeError`.
    """
    return graph.as_graph_def().library if graph._functions else None
