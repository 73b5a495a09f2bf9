"""The runtime of this process, which runs the old API.

A process has one runtime, because the legacy runtime has to disable eager execution for all of
TensorFlow before anything else uses it.
"""

from __future__ import annotations

import abc
import importlib
import threading
from typing import Any, Callable, ContextManager, Mapping, NamedTuple, Sequence

from compat._tensorflow import coordinator_module, datasets, version
from compat.cluster.liveness.cluster import Cluster
from compat.errors import UserError
from compat.runtime.graphs.ahead import begin
from compat.runtime.registry import RUNTIMES
from compat.runtime.run import Run
from compat.runtime.session import Session, Step, StepDefinition


class MonitoredArguments(NamedTuple):
    """The arguments of `compat.MonitoredTrainingSession` that a runtime needs."""

    master: str
    is_chief: bool
    checkpoint_dir: str | None
    scaffold: Any
    hooks: Sequence[Any]
    config: Any
    stop_grace_period_secs: float
    max_wait_secs: float
    recovers: bool = True  # Whether a lost session is replaced, if the runtime can do so.
    checkpoint_file: str | None = None  # The checkpoint to restore, instead of the newest one.
    creator: Any = None  # A session creator of the program.
    saves: bool = False  # Whether a hook saves checkpoints to the folder.


class Runtime(abc.ABC):
    """The parts of the API that differ between the runtimes; all others are written once.

    Attributes:
      name: "legacy" or "modern".
      has_coordinator: whether one task of a cluster schedules the steps of all workers; otherwise
        each task that trains runs its own program.
    """

    name = ""
    has_coordinator = False
    hands_out = False  # Whether this process schedules steps on other tasks.
    coordinator: Any = None  # The `ClusterCoordinator`, once the tasks have met.
    saver_class: Any  # The `Saver` of this runtime.
    session_class: Any  # The class of its sessions.

    def __init__(self) -> None:
        self.server: Cluster | None = None  # None for a run in this process alone.
        self._servers: list[Cluster] = []

    def add_server(self, server: Cluster) -> None:
        """Sets the server of this process; a server that trains replaces one that serves."""
        self._servers.append(server)
        self.server = max(self._servers, key=lambda each: (not each.serves, each is server))

    def add_local_server(self, target: str) -> None:  # noqa: B027 - Most need not know.
        """Registers the target of a server that is in no cluster."""

    def server_at(self, target: str) -> Cluster | None:
        """Returns the server of the task whose session connects to `target`."""
        servers = [each for each in self._servers if each.target == target and not each.serves]
        return servers[-1] if servers and self.server is not None else self.server

    @abc.abstractmethod
    def device(self, setter: Any) -> ContextManager[None]:
        """Opens a scope in which `setter`, a device function or name, places operations."""

    @abc.abstractmethod
    def global_step(self, create: bool = False) -> Any | None:
        """Returns the variable that counts the updates, or None where the program has none."""

    @abc.abstractmethod
    def step(self, definition: StepDefinition) -> Step:
        """See `compat.step`."""

    @abc.abstractmethod
    def worker_variable(self, initial: Any, name: str) -> Any:
        """See `compat.worker_variable`."""

    @abc.abstractmethod
    def variables(self) -> dict[str, Any]:
        """Returns the variables that make up a checkpoint, by name, without the ":0"."""

    @abc.abstractmethod
    def slices(self) -> dict[str, Any]:
        """Returns the `SaveSliceInfo` of each part of a partitioned variable, by its name."""

    @abc.abstractmethod
    def default_saver(self) -> Any:
        """Returns the saver of a program that has none of its own; None without variables."""

    def meet(self) -> None:  # noqa: B027 - Else each session waits for the tasks that it needs.
        """Waits for all tasks now, not in the first step, if the cluster has a coordinator.

        After this call the cluster keeps its coordinator, even if the program has no step.
        """

    def before_session(self) -> None:  # noqa: B027 - Only a coordinator has a choice.
        """Decides, before a session is created, whether each task runs its own program.

        The program has built its steps by then.
        """

    @abc.abstractmethod
    def reach(
        self, server: Cluster, target: str, config: Any, graph: Any, everybody: bool
    ) -> tuple[str, Any]:
        """Waits for the tasks that a session needs, or for all if `everybody`.

        Returns:
          The target and the options of the session.
        """

    @abc.abstractmethod
    def waits_for_chief(self, is_chief: bool, target: str) -> bool:
        """Whether another task gives the variables of a session their first values."""

    @abc.abstractmethod
    def opened(self, opening: Callable[[], Any], server: Cluster | None) -> Any:
        """Returns the result of `opening()`; raises if it would wait forever for a lost peer."""

    def begin(self, session: Any) -> None:  # noqa: B027 - Only the modern runtime has to know.
        """Prepares a session, whose variables have values, for its first call."""

    @abc.abstractmethod
    def open_session(self, run: Run, target: str, config: Any) -> Session:
        """Returns a session whose variables have their first or restored values."""

    @abc.abstractmethod
    def monitored_session(self, arguments: MonitoredArguments) -> Any:
        """See `compat.MonitoredTrainingSession` and `compat.SingularMonitoredSession`."""

    def average(self, tensors: Sequence[Any]) -> list[Any]:
        """See `compat.average`."""
        return list(tensors)

    def apply_mean(self, optimizer: Any, replicas: int, gradients: Any, *args: Any) -> Any:
        """Returns the operation that a replica runs to average its gradients with the others'.

        Args:
          optimizer: the optimizer that applies the mean of the replicas' gradients.
          replicas: the number of replicas.
          gradients: pairs of a gradient and its variable.
          args: the arguments of `apply_gradients` after the gradients.
        """
        raise NotImplementedError

    def replicated(self, optimizer: Any, aggregated: int) -> Any:
        """Returns an optimizer that applies the mean of `aggregated` gradients, one a replica.

        Args:
          optimizer: the optimizer that makes the updates.
          aggregated: the number of gradients in an update.
        """
        return _Averaging(self, optimizer, aggregated)

    @abc.abstractmethod
    def clear(self) -> None:
        """Forgets variables and steps, so that the process can build another program."""

    @abc.abstractmethod
    def finish_building(self, run: Run) -> None:
        """Completes the graph for a new supervisor, since the model definition is complete."""

    def ended_by(self, error: BaseException) -> None:
        """Passes the error that ends this task to `Server.diagnose`, before the task stops."""
        if self.server is not None:
            self.server.diagnose(error)


class _Averaging:
    """An optimizer whose updates are those of `Runtime.apply_mean`."""

    def __init__(self, runtime: Runtime, optimizer: Any, replicas: int) -> None:
        self._runtime, self._optimizer, self._replicas = runtime, optimizer, replicas

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        """Returns an operation that adds gradients; the last call of an update applies the mean."""
        return self._runtime.apply_mean(self._optimizer, self._replicas, pairs, global_step, name)


_current: Runtime | None = None
_lock = threading.RLock()  # A program may create its first server on a thread.


def select_runtime(name: str = "auto") -> Runtime:
    """Chooses the runtime of this process, before any variable is made.

    Args:
      name: "legacy" (graphs and sessions of `tf.compat.v1`), "modern" (`ParameterServerStrategy`
        with `ClusterCoordinator`), or "auto": modern where TensorFlow has it.

    The program is a graph of TensorFlow 1.x on either runtime, so eager execution is disabled here.
    If the program has disabled it before, each task that trains runs its own program on the modern
    runtime too, as in 2016. Otherwise one task schedules the steps of all workers.

    Returns:
      The runtime; a second call with the same name returns the same one.

    Raises:
      UserError: the name is unknown, this TensorFlow has no modern runtime, or the process already
        uses the other one.
    """
    global _current
    known = ["auto", *RUNTIMES]
    if name not in known:
        raise UserError(f"runtime {name!r} is unknown; choose one of {', '.join(known)}")
    with _lock:
        if name == "auto":
            name = _current.name if _current else "modern" if coordinator_module() else "legacy"
        if _current is not None:
            if _current.name != name:
                raise UserError(
                    f"runtime {name!r} was asked for in a process that already uses "
                    f"{_current.name!r}; start a process of its own for it"
                )
            return _current
        if RUNTIMES[name].has_coordinator and not coordinator_module():
            raise UserError(
                f"runtime 'modern' needs TensorFlow 2.4 or later, this is {version()}; "
                "use --runtime=legacy or a newer TensorFlow"
            )
        module = importlib.import_module(f"compat.runtime.{name}.runtime")
        _current = module.create()
        assert _current is not None
        datasets.give_iterators()
        return _current


def runtime_from(argv: list[str], default: str = "legacy") -> str:
    """Takes `--runtime=NAME` out of a command line; returns the name, or the default.

    For programs that parse their flags themselves: `compat.runtime_from(sys.argv)`. It also takes
    `--ahead=CALLS`, and gathers calls from then on; see `compat.ahead`.

    Raises:
      UserError: `--ahead` is not followed by a number of calls.
    """
    name_of_runtime = default
    for word in [word for word in argv[1:] if word.startswith(("--runtime=", "--ahead="))]:
        name, _, value = word.partition("=")
        argv.remove(word)
        if name == "--runtime":
            name_of_runtime = value
        elif value.isdecimal():
            begin(int(value))
        else:
            raise UserError(f"{word} was given; expected a number of calls, such as --ahead=20")
    return name_of_runtime


def selected() -> str | None:
    """Returns the name of the runtime of this process; None if none has been selected."""
    return None if _current is None else _current.name


def has_coordinator() -> bool:
    """Whether this process has selected a runtime on which one task schedules all steps."""
    return _current is not None and _current.has_coordinator


def current_runtime() -> Runtime:
    """Returns the runtime of this process; selects "auto" if none has been selected."""
    return _current if _current is not None else select_runtime("auto")


def current_server() -> Cluster | None:
    """Returns the server of this process, if it has one yet."""
    return None if _current is None else _current.server


def device(setter: Any) -> ContextManager[None]:
    """Opens a scope in which `setter` places variables; see `compat.replica_device_setter`.

    It differs from `tf.device` in that a process without a cluster ignores the setter.
    """
    return current_runtime().device(setter)


def get_or_create_global_step() -> Any:
    """Returns the variable that counts the updates, int64 scalar, on either runtime.

    Raises:
      UserError: it is created outside of `with compat.device(...)`; see `step`.
    """
    return current_runtime().global_step(create=True)


def average(tensors: Sequence[Any]) -> list[Any]:
    """Averages tensors over the workers that make an update together; called inside a step.

    Returns the tensors unchanged if each worker makes its own updates (`Server.synchronous` is
    false), or if `SyncReplicasOptimizer` averages.

    Args:
      tensors: float32, of known shapes, the same on all workers; `tf.IndexedSlices` become dense
        if they are averaged.
    """
    return current_runtime().average(tensors)


def worker_variable(initial: Any, name: str) -> Any:
    """Creates a variable on each worker, for values that a step passes to the next one.

    The variable is local: no checkpoint has it, it is not trained, and it has its initial value
    again on a worker that was restarted. Called inside a step's function.

    Args:
      initial: an array, its first value.
      name: the name of the variable.

    Returns:
      An object with `read_value()` and `assign(tensor)`, both tensors or operations of the step.
    """
    return current_runtime().worker_variable(initial, name)


def step(
    function: Callable[..., Mapping[str, Any]],
    signature: Sequence[Any],
    per_worker_data: Sequence[Any] = (),
    on_coordinator: bool = False,
    dataset: Callable[[int, int], Any] | None = None,
    updates: int = 1,
) -> Step:
    """Makes `function` runnable by a session of either runtime: `session.run(step, *arrays)`.

    The function is called once, to build a graph, as TensorFlow 1.x programs do: it may use
    variables that exist already (of a `tf.Module`, for example) or create them (`get_variable`,
    `Optimizer.minimize`). Its operations join the default graph. On the modern runtime a session
    copies them several times into one function, which the coordinator schedules on workers. On both
    runtimes an operation runs only if a returned value depends on it; those of `tf1.summary` run
    when a supervisor or a hook writes a summary. A warning names assignments that never run.

    Local variables (`tf1.metrics`, `tf1.get_local_variable`) are stored on the worker and keep
    their values from one of its steps to the next. They are in no checkpoint, and have their
    initial values again on a worker that was restarted.

    Random operations and initial values that are given `seed=` draw the same numbers on both
    runtimes. `tf1.set_random_seed` alone makes runs of one runtime and release repeatable, not
    those of the other, because TensorFlow derives seeds from a count of operations that differs
    between the runtimes. The updates of one `run_many` draw the numbers that as many calls would.

    On the modern runtime, another worker repeats a whole call that a lost worker had begun. So each
    loss of a worker may apply up to the `count` steps of one `run_many` twice.

    Args:
      function: takes the element of `dataset`, if there is one, then the tensors of
        `per_worker_data` and those of `signature`. It returns a dict of tensors, operations, and
        lists, tuples and dicts of both. A session runs the operations, and returns the same
        structure with None for each operation.
      signature: a `tf.TensorSpec` for each array that a call passes.
      per_worker_data: arrays, such as the training set, that are stored on every worker once, so
        that calls do not pass them.
      on_coordinator: on the modern runtime, run in the coordinator's process, not on a worker; for
        evaluation.
      dataset: returns the `tf.data.Dataset` of a worker, given its index and the number of workers;
        on the coordinator, 0 and 1. Each step takes an element, of any structure. At its end
        see `Session.run`; `Session.restart` begins it anew, and so does the restart of a worker.
        On the modern runtime it runs on the worker, where Python code of
        `Dataset.from_generator` or `tf.py_function` is not available.
      updates: by how much a run of the step raises the global step, from which the modern runtime
        computes `Session.planned_step`.

    Returns:
      A step for `Session.run`. Its values include "global_step" if the program has one.

    Raises:
      UserError: the function does not return a dict of tensors; or, in a cluster on the modern
        runtime, the step calls Python (`tf.py_func`), or the step or a variable that it uses is
        created outside of `with compat.device(...)`.
    """
    return current_runtime().step(
        StepDefinition(function, signature, per_worker_data, on_coordinator, dataset, updates)
    )
