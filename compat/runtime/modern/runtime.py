"""The modern runtime: `ParameterServerStrategy` with `ClusterCoordinator`, TensorFlow 2.4 on."""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.liveness.monitor import Watch
from compat.liveness.watchdog import watched
from compat.runtime.interface import Runtime
from compat.runtime.modern import coordinator
from compat.runtime.modern.all_reduce import Replicas
from compat.runtime.modern.step import MOST_UNROLLED, ModernStep
from compat.runtime.modern.variables import Placement, WorkerVariable
from compat.runtime.session import Session, Step, Values
from compat.supervisor import Supervisor


def create() -> Runtime:
    """Returns the runtime.

    Raises:
      UserError: eager execution is off in this process.
    """
    if not tf.executing_eagerly():
        raise UserError(
            "runtime 'modern' needs eager execution, which this program has disabled; remove "
            "disable_eager_execution() or disable_v2_behavior(), or use --runtime=legacy"
        )
    return ModernRuntime()


class ModernSession(Session):
    """Schedules steps on the coordinator, and keeps every worker busy.

    Threads may share it: one at a time schedules.
    """

    def __init__(self, runtime: ModernRuntime, supervisor: Supervisor) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._in_flight: collections.deque[Any] = collections.deque()
        self._last: dict[Any, Values] = {}  # By step.
        self._ended: dict[Any, set[int]] = {}  # Workers whose data have ended, by step.
        self._lock = threading.RLock()
        # One closure at work and one in waiting for each worker.
        self._workers = runtime.server.num_workers if runtime.server is not None else 1
        step = supervisor.global_step
        self.planned_step = 0 if step is None else int(step.numpy())

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("feed_dict") is not None:
            raise UserError(
                "feed_dict needs placeholders, which the modern runtime does not support; pass the "
                "arrays behind the step: session.run(step, images, labels)"
            )
        if isinstance(fetches, ModernStep):
            return self.run_many(fetches, *[np.asarray(array)[np.newaxis] for array in args])
        return self._wait(lambda: tf.nest.map_structure(_value, fetches))

    def run_many(self, step: Any, *stacked: Any, count: int | None = None) -> Values:
        if count is None:
            count = len(stacked[0]) if stacked else 1
        if count == 0:
            return {}
        with self._lock:
            if step.on_coordinator or self._runtime.coordinator is None:
                return self._run_here(step, stacked, count)
            return self._schedule(step, stacked, count)

    def _run_here(self, step: ModernStep, stacked: Sequence[Any], count: int) -> Values:
        values: Values = {}
        for first in range(0, count, MOST_UNROLLED):
            part = [array[first : first + MOST_UNROLLED] for array in stacked]
            size = min(MOST_UNROLLED, count - first)
            call = functools.partial(step.loop(size), *step.arguments(part, size))
            found, made, _ = _received(step, self._wait(call))
            if not made:
                break
            values = found
        if not values:
            raise _out_of_range()
        if not step.on_coordinator:
            self._record(step, values)
            self.planned_step = int(values.get("global_step", 0))
        return values

    def _schedule(self, step: ModernStep, stacked: Sequence[Any], count: int) -> Values:
        if len(self._ended.get(step, ())) >= self._workers:
            raise _out_of_range()
        arguments = step.arguments(stacked, count)
        # Traced with the first call, and then stored on all servers.
        schedule = functools.partial(
            self._runtime.coordinator.schedule, step.loop(count), args=arguments
        )
        self._in_flight.append((step, count, self._wait(schedule)))
        self.planned_step += count if step.trains else 0
        # The first call is waited for: it has values to give, and errors come out at once.
        while len(self._in_flight) > (2 * self._workers if step in self._last else 0):
            self._collect()
            if not self._in_flight and step not in self._last:
                break
        if step not in self._last or len(self._ended.get(step, ())) >= self._workers:
            return self._schedule_more(step, stacked, count)
        return self._last[step]

    def _schedule_more(self, step: ModernStep, stacked: Sequence[Any], count: int) -> Values:
        """Returns values that are there yet, or schedules again: a worker's data had ended."""
        while self._in_flight:
            before = self._last.get(step)
            self._collect()
            if self._last.get(step) is not before:
                return self._last[step]
        return self._schedule(step, stacked, count)

    def _collect(self) -> None:
        step, count, result = self._in_flight.popleft()
        values, made, worker = _received(step, self._wait(result.fetch))
        if made < count:
            self._ended.setdefault(step, set()).add(worker)
            self.planned_step -= count - made if step.trains else 0
        if made:
            self._record(step, values)

    def _record(self, step: ModernStep, values: Values) -> None:
        self._last[step] = values
        self._supervisor.after_training_call(self, values)

    def _wait(self, function: Callable[[], Any]) -> Any:
        """Returns what `function` does, which needs the cluster, or raises if a task is lost."""
        if self._runtime.coordinator is None or self._runtime.server is None:
            return function()
        return watched(function, Watch(self._runtime.server, workers=True))

    def drain(self) -> Iterator[Values]:
        while self._in_flight:
            before = dict(self._last)
            self._collect()
            yield from (v for step, v in self._last.items() if v is not before.get(step))

    def restart(self, step: Any) -> None:
        for _ in self.drain():
            pass
        self._ended.pop(step, None)
        step.restart()

    def read(self, variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
        def read() -> dict[str, np.ndarray]:
            return {name: variable.numpy() for name, variable in variables.items()}

        return dict(self._wait(read))

    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        def assign() -> None:
            for name, variable in variables.items():
                variable.assign(values[name])

        self._wait(assign)

    def any_worker(self, flag: bool) -> bool:
        replicas = self._runtime.replicas
        return flag if replicas is None else replicas.any(flag)

    def leave(self) -> None:
        self.any_worker(False)  # Together: those who are left would take the first for lost.

    def close(self) -> None:
        self._in_flight.clear()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            for _ in self.drain():
                pass
        self.close()


def _received(step: ModernStep, found: Any) -> tuple[Values, int, int]:
    """Returns the values of a call, how many steps it has made, and the worker's index."""
    if not step.streams:
        vector, *others = found
        return step.unpack(vector, others), 1 << 62, 0
    vector, *others, made, worker = found
    return step.unpack(vector, others), int(made), int(worker)


def _out_of_range() -> Exception:
    error: Exception = tf1.errors.OutOfRangeError(None, None, "the data of all workers have ended")
    return error


def _value(fetch: Any) -> np.ndarray:
    if not hasattr(fetch, "numpy"):
        raise UserError(
            f"the modern runtime cannot run {fetch!r}; pass a compat.step or a variable"
        )
    return np.asarray(fetch.numpy())


class ModernRuntime(Runtime):
    """Maps the old API onto a coordinator and its workers, or onto this process alone.

    Attributes:
      coordinator: the `ClusterCoordinator`, or None where this process is none.
      replicas: what joins workers that make each update together, or None.
      placement: where variables are made.
    """

    name = "modern"

    def __init__(self) -> None:
        super().__init__()
        self.coordinator: Any = None
        self.replicas: Replicas | None = None
        self.placement = Placement()
        self._global_step: Any = None

    @contextlib.contextmanager
    def device(self, setter: Any) -> Iterator[None]:
        if self.server is None or self.server.serves:
            setter = None  # There is nowhere else to place anything.
        elif self.server.synchronous:
            setter = None
            if self.replicas is None:
                self.replicas = Replicas(self.server)
        elif self.coordinator is None:
            self.coordinator = coordinator.connect(self.server)
        with self.placement.scope(setter):
            yield

    def average(self, tensors: Sequence[Any]) -> list[Any]:
        return list(tensors) if self.replicas is None else self.replicas.average(tensors)

    def global_step(self) -> Any | None:
        if self._global_step is None:
            return self.placement.variables.get("global_step")
        return self._global_step

    def create_global_step(self) -> Any:
        if self._global_step is None:
            self._global_step = self.global_step()
            if self._global_step is None:
                with self.placement.scope():
                    self._global_step = tf.Variable(
                        np.int64(0), name="global_step", trainable=False
                    )
            self.placement.global_step = self._global_step
        return self._global_step

    def step(
        self,
        function: Callable[..., Mapping[str, Any]],
        signature: Any,
        per_worker_data: Any,
        on_coordinator: bool,
        dataset: Callable[[int, int], Any] | None,
    ) -> Step:
        server = self.server
        trains = server is not None and not server.serves and not on_coordinator
        if trains and self.coordinator is None and self.replicas is None:
            raise UserError(
                "a step was made outside of `with compat.device(...)`, so this task would train "
                "alone; make variables and steps inside it"
            )
        return ModernStep(function, signature, per_worker_data, self, on_coordinator, dataset)

    def worker_variable(self, initial: Any, name: str) -> Any:
        variable = WorkerVariable(initial, name)
        self.placement.worker_variables.append(variable)
        return variable

    def variables(self) -> dict[str, Any]:
        return dict(self.placement.variables)

    def finish_building(self, supervisor: Supervisor) -> None:
        if supervisor.sync_optimizer is not None:
            raise UserError(
                "SyncReplicasOptimizer is not available on the modern runtime, where "
                "parameter-server training is asynchronous; use --runtime=legacy --sync"
            )
        values = supervisor.restored_values()
        if values is not None:
            for name, variable in supervisor.saver.variables().items():
                variable.assign(values[name])

    def open_session(self, supervisor: Supervisor, target: str, config: Any) -> Session:
        del target, config  # The strategy knows its workers; options go to the Server.
        if self.replicas is not None:
            self.replicas.broadcast(list(self.placement.variables.values()))
        return ModernSession(self, supervisor)
