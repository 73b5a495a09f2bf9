"""A session of the modern runtime: schedules steps on workers, or runs them in this process."""

from __future__ import annotations

import collections
import functools
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.liveness.diagnosis import call_monitor
from compat.liveness.watchdog import run_with_watchdog
from compat.runtime.modern.step import MOST_UNROLLED, ModernStep
from compat.runtime.session import Session, Values, number_of_updates

if TYPE_CHECKING:
    from compat.runtime.modern.runtime import ModernRuntime
    from compat.supervisor import Supervisor


class _Scheduled(NamedTuple):
    """A closure that the coordinator has been given, and its result to come."""

    step: ModernStep
    steps: int
    result: Any


class ModernSession(Session):
    """Schedules steps on the workers and keeps every worker busy."""

    def __init__(self, runtime: ModernRuntime, supervisor: Supervisor) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._in_flight: collections.deque[_Scheduled] = collections.deque()
        self._last: dict[ModernStep, Values] = {}
        self._ended: dict[ModernStep, set[int]] = collections.defaultdict(set)
        # Held by each call, as long as it takes; calls of a supervisor's hooks come from within.
        self._lock = threading.RLock()
        # One closure at work and one in waiting for each worker.
        self._num_workers = runtime.server.num_workers if runtime.server is not None else 1
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
        count = number_of_updates(stacked, count)
        values: Values = {}
        most = MOST_UNROLLED if step.on_coordinator else max(count, 1)
        with self._lock:
            for first in range(0, count, most):
                number = min(most, count - first)
                arguments = step.arguments([a[first : first + most] for a in stacked], number)
                run = self._run_alone if step.on_coordinator else self._run_on_workers
                try:
                    values = run(step, number, arguments)
                except tf1.errors.OutOfRangeError:
                    if not values:
                        raise
                    break
        return dict(values)  # A copy, which the caller may change.

    def _run_alone(self, step: ModernStep, count: int, arguments: Any) -> Values:
        result = self._wait(functools.partial(step.loop(count), *arguments))
        values, made, _ = _outcome(step, count, result)
        if not made:
            raise _end_of_data()
        if step.trains:
            self._record(step, values)
            self.planned_step = int(values.get("global_step", 0))
        return values

    def _run_on_workers(self, step: ModernStep, count: int, arguments: Any) -> Values:
        while True:
            if len(self._ended[step]) < self._num_workers:
                self._schedule(step, count, arguments)
            elif all(scheduled.step is not step for scheduled in self._in_flight):
                raise _end_of_data()
            made = False
            # The first call is waited for: it has values to give, and errors come out at once.
            # At the end of the data each call waits for one that was scheduled before.
            while self._in_flight and not made and self._must_collect(step):
                made = self._collect() is step
            if step in self._last and (made or len(self._ended[step]) < self._num_workers):
                return self._last[step]

    def _must_collect(self, step: ModernStep) -> bool:
        too_many = len(self._in_flight) > 2 * self._num_workers
        return too_many or step not in self._last or len(self._ended[step]) >= self._num_workers

    def _schedule(self, step: ModernStep, count: int, arguments: Any) -> None:
        assert self._runtime.coordinator is not None
        # Traced with the first call, and then stored on all servers.
        schedule = self._runtime.coordinator.schedule
        result = self._wait(functools.partial(schedule, step.loop(count), args=arguments))
        self._in_flight.append(_Scheduled(step, count, result))
        if step.trains:
            self.planned_step += count

    def _collect(self) -> ModernStep | None:
        """Waits for the closure that was scheduled first; returns its step if it made any."""
        step, count, result = self._in_flight.popleft()
        values, made, worker = _outcome(step, count, self._wait(result.fetch))
        if made < count:
            self._ended[step].add(worker)
            if step.trains:
                self.planned_step -= count - made
        if not made:
            return None
        self._record(step, values)
        return step

    def _record(self, step: ModernStep, values: Values) -> None:
        self._last[step] = values
        if step.trains:
            self._supervisor.services.after_training_call(self, values)

    def _wait(self, function: Callable[[], Any]) -> Any:
        """Returns what `function` does, which needs the cluster, or raises if a task is lost."""
        if self._runtime.coordinator is None or self._runtime.server is None:
            return function()
        poll = call_monitor(self._runtime.server, workers=True)
        return run_with_watchdog(function, poll)

    def drain(self) -> Iterator[Values]:
        while self._in_flight:
            with self._lock:
                step = self._collect() if self._in_flight else None
            if step is not None:
                yield self._last[step]

    def restart(self, step: Any) -> None:
        with self._lock:
            while any(scheduled.step is step for scheduled in self._in_flight):
                self._collect()
            self._ended.pop(step, None)
            self._last.pop(step, None)
            step.restart()

    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        def assign() -> None:
            for name, variable in variables.items():
                variable.assign(values[name])

        self._wait(assign)

    def any_worker(self, flag: bool) -> bool:
        replicas = self._runtime.replicas
        return flag if replicas is None else replicas.any(flag)

    def leave(self) -> None:
        self.any_worker(False)  # Together: those that are left would take the first for lost.

    def close(self) -> None:
        self._in_flight.clear()


def _outcome(step: ModernStep, count: int, found: Any) -> tuple[Values, int, int]:
    """Returns the values of a call, the number of steps that it has made, and the worker."""
    made, worker = count, 0
    if step.streams:
        *found, made, worker = found
    return step.unpack(*found), int(made), int(worker)


def _end_of_data() -> Exception:
    error: Exception = tf1.errors.OutOfRangeError(None, None, "the dataset of a step has ended")
    return error


def _value(fetch: Any) -> np.ndarray:
    if not hasattr(fetch, "numpy"):
        raise UserError(
            f"the modern runtime cannot run {fetch!r}; pass a compat.step or a variable"
        )
    return np.asarray(fetch.numpy())
