"""A session of the modern runtime: schedules steps on workers, or runs them in this process."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.errors import UserError
from compat.liveness.cluster import call_monitor
from compat.liveness.watchdog import run_with_watchdog
from compat.runtime.graphs.device_placement import worker_of
from compat.runtime.modern import rows
from compat.runtime.modern.step import ModernStep
from compat.runtime.session import Session, Values, number_of_updates

if TYPE_CHECKING:
    from compat.runtime.modern.hook_graph import HookGraph
    from compat.runtime.modern.runtime import ModernRuntime
    from compat.runtime.run import Run

NO_PLACEHOLDERS = (
    "feed_dict feeds the arrays of a step, by the names in its signature, and the modern runtime "
    "has no other placeholders; write session.run(step, feed_dict={'x': ...})"
)


@dataclasses.dataclass(eq=False)
class _Scheduled:
    """A closure that the coordinator has been given, and its result to come."""

    step: ModernStep
    steps: int
    updates: int  # That each step makes.
    summary: bool  # Whether the result ends with one.
    result: Any
    is_received: bool = False
    outcome: Outcome | None = None  # What was received; None if it was lost.


class Outcome(NamedTuple):
    """What a call has returned."""

    values: Values
    made: int  # How many steps.
    worker: int | None  # None where TensorFlow does not show it.
    summary: bytes | None


class ModernSession(Session):
    """Schedules steps on the workers and keeps every worker busy."""

    def __init__(self, runtime: ModernRuntime, supervisor: Run) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._in_flight: collections.deque[_Scheduled] = collections.deque()
        self._last: dict[ModernStep, Outcome] = {}
        self._ended: dict[ModernStep, set[int | None]] = collections.defaultdict(set)
        # Held by each call that trains, or runs on workers, as long as it takes; calls of a
        # supervisor's hooks come from within.
        self._lock = threading.RLock()
        # One closure at work and one in waiting for each worker.
        self._num_workers = runtime.server.num_workers if runtime.server is not None else 1
        self.begin()

    @property
    def graph(self) -> HookGraph:
        """The graph of a step that trains, as hooks see it, such as for `FileWriter`."""
        return self._runtime.hook_graph

    def begin(self) -> None:
        """Counts from the step that the variables have, which are all initialized now."""
        if self._runtime.coordinator is not None:  # Another session may have steps in flight.
            self._wait(self._runtime.coordinator.join)
        step = self._supervisor.global_step
        if step is not None and not tf.executing_eagerly():
            raise UserError(
                "a session was opened in a tf.Graph, expected none around it on the modern "
                "runtime; remove `with tf.Graph().as_default():`, or use --runtime=legacy"
            )
        self.planned_step = 0 if step is None else int(step.numpy())

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        feed_dict = kwargs.get("feed_dict")
        if isinstance(fetches, ModernStep):
            arrays = fetches.given(args, feed_dict)
            return self.run_many(fetches, *[np.asarray(array)[np.newaxis] for array in arrays])
        feed_dict = args[0] if args else feed_dict
        flat = tf.nest.flatten(fetches)
        known = self._runtime.hook_graph.origins
        origins = [known.get(id(getattr(fetch, "op", fetch))) for fetch in flat]
        if any(origins):
            return tf.nest.pack_sequence_as(fetches, self._run_part(flat, origins, feed_dict))
        if feed_dict:
            raise UserError(NO_PLACEHOLDERS)
        return self._wait(lambda: tf.nest.map_structure(_value, fetches))

    def _run_part(self, fetches: Any, origins: Any, feed_dict: Any) -> list[Any]:
        """Runs the part of a step that computes what is fetched of it."""
        roots = {origin[0] for origin in origins if origin is not None}
        if len(roots) > 1:
            raise UserError("run() was given values of two steps; run one after the other")
        root = roots.pop()
        step, arrays = root.part(sorted({o[1] for o in origins if o is not None}), feed_dict)
        if step.trains:
            values = self.run_many(step, *[np.asarray(array)[np.newaxis] for array in arrays])
        else:
            values = self.run_now(step, *arrays).values

        def value(fetch: Any, origin: Any) -> Any:
            if origin is None:
                return self._wait(lambda: _value(fetch))
            found = values.get(origin[1])
            is_number = isinstance(found, float)
            return fetch.dtype.as_numpy_dtype(found) if is_number else found

        return [value(fetch, origin) for fetch, origin in zip(fetches, origins)]

    def run_many(self, step: Any, *stacked: Any, count: int | None = None) -> Values:
        count = number_of_updates(stacked, count)
        values: Values = {}
        made = 0
        # Actors, say, need not wait while another thread's call trains.
        only_looks = step.on_coordinator and not step.trains and not step.streams
        with contextlib.nullcontext() if only_looks else self._lock:
            for number in step.sizes(count):
                arguments = step.arguments([a[made : made + number] for a in stacked], number)
                due = self._collects(step) and self._supervisor.services.summary_due()
                try:
                    values = self._run(step, number, arguments, summary=due).values
                except tf1.errors.OutOfRangeError:
                    if not values:
                        raise
                    break
                made += number
        return step.structured(values)  # A copy, which the caller may change.

    def run_now(self, step: ModernStep, *arrays: Any, summary: bool = False) -> Outcome:
        """Runs a step and waits for this very call; returns also the summary, if asked."""
        with self._lock:
            arguments = step.arguments([np.asarray(array)[np.newaxis] for array in arrays], 1)
            return self._run(step, 1, arguments, summary, wait=True)

    def _run(
        self, step: ModernStep, count: int, arguments: Any, summary: bool, wait: bool = False
    ) -> Outcome:
        summary = step.with_summary(summary)
        step.before_copy = self.check_overdue
        if step.on_coordinator:
            return self._run_alone(step, count, arguments, summary)
        return self._run_on_workers(step, count, arguments, summary, wait or summary)

    def _run_alone(self, step: ModernStep, count: int, arguments: Any, summary: bool) -> Outcome:
        result = self._wait(functools.partial(step.loop(count, summary), *arguments))
        outcome = _outcome(step, count, summary, result)
        if not outcome.made:
            raise _end_of_data()
        if step.trains:
            self._count(step, outcome)
            self._record(step, outcome)
            self.planned_step = int(outcome.values.get("global_step", 0))
        return outcome

    def _run_on_workers(
        self, step: ModernStep, count: int, arguments: Any, summary: bool, wait: bool
    ) -> Outcome:
        if step.calls_of_an_update > 1 and step.completes_update:
            # After the others, so that it finds all gradients, and before those of the next update.
            wait = True
            while self._in_flight:
                self._collect()
        while True:
            if len(self._ended[step]) < self._num_workers:
                self._schedule(step, count, arguments, summary)
            elif all(scheduled.step is not step for scheduled in self._in_flight):
                raise _end_of_data()
            made = False
            # The first call is waited for: it has values to give, and errors come out at once.
            # At the end of the data each call waits for one that was scheduled before.
            while self._in_flight and (wait or not made and self._must_collect(step)):
                made = self._collect() is step
            goes_on = not wait and len(self._ended[step]) < self._num_workers
            if step in self._last and (made or goes_on):
                return self._last[step]

    def _must_collect(self, step: ModernStep) -> bool:
        too_many = len(self._in_flight) > 2 * self._num_workers
        return too_many or step not in self._last or len(self._ended[step]) >= self._num_workers

    def _schedule(self, step: ModernStep, count: int, arguments: Any, summary: bool) -> None:
        assert self._runtime.coordinator is not None
        # Traced with the first call, and then stored on all servers.
        schedule = self._runtime.coordinator.schedule
        loop = step.loop(count, summary)
        result = self._wait(functools.partial(schedule, loop, args=arguments))
        updates = step.updates if step.trains and step.completes_update else 0
        self._in_flight.append(_Scheduled(step, count, updates, summary, result))
        self.planned_step += count * updates

    def _collect(self) -> ModernStep | None:
        """Waits for the closure that was scheduled first; returns its step if it made any."""
        scheduled = self._in_flight.popleft()
        self._receive(scheduled)
        if scheduled.outcome is None:
            return scheduled.step  # The steps are made: others' values stand for theirs.
        if not scheduled.outcome.made:
            return None
        self._record(scheduled.step, scheduled.outcome)
        return scheduled.step

    def _receive(self, scheduled: _Scheduled) -> None:
        """Waits for a closure, and counts what it has made."""
        if scheduled.is_received:
            return
        step, count = scheduled.step, scheduled.steps
        try:
            result = self._wait(scheduled.result.fetch)
            outcome = _outcome(step, count, scheduled.summary, result)
        except tf1.errors.UnavailableError as error:
            # TensorFlow 2.4 leaves values on the worker that computed them, and loses them with it.
            if step not in self._last or "/job:worker" not in str(error):
                raise
            scheduled.is_received = True
            return
        if outcome.made < count:
            self._ended[step].add(outcome.worker)
            self.planned_step -= (count - outcome.made) * scheduled.updates
        if outcome.made and not step.streams:
            # None if TensorFlow does not show it.
            worker = worker_of(private.device_of(scheduled.result))
            outcome = outcome._replace(worker=worker)
        if outcome.made:
            self._count(step, outcome)
        scheduled.is_received, scheduled.outcome = True, outcome

    def settle(self) -> None:
        with self._lock:
            for scheduled in self._in_flight:
                self._receive(scheduled)

    def _count(self, step: ModernStep, outcome: Outcome) -> None:
        if step.trains and self.on_updates is not None:
            self.on_updates(outcome.worker, outcome.made * step.updates, outcome.values)

    def _record(self, step: ModernStep, outcome: Outcome) -> None:
        self._last[step] = outcome
        if step.trains:
            services = self._supervisor.services
            collects = self._collects(step)
            services.after_training_call(self, outcome.values, outcome.summary, collects)

    def _collects(self, step: ModernStep) -> bool:
        """Whether the summary operations of a step are what is written, and not its values."""
        default = self._supervisor.summary_op is self._supervisor.USE_DEFAULT
        return step.trains and step.summarizes and default

    def _wait(self, function: Callable[[], Any]) -> Any:
        """Returns what `function` does, which needs the cluster, or raises if a task is lost."""
        if self._runtime.coordinator is None or self._runtime.server is None:
            return function()
        poll = call_monitor(self._runtime.server, workers=True, then=self.check_overdue)
        return run_with_watchdog(function, poll)

    def drain(self) -> Iterator[Values]:
        while self._in_flight:
            with self._lock:
                step = self._collect() if self._in_flight else None
            if step is not None:
                yield step.structured(self._last[step].values)

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
                rows.assign(variable, values[name])

        self._wait(assign)

    def any_worker(self, flag: bool) -> bool:
        replicas = self._runtime.replicas
        return flag if replicas is None else replicas.any(flag)

    def leave(self) -> None:
        self.any_worker(False)  # Together: those that are left would take the first for lost.

    def close(self) -> None:
        self._in_flight.clear()
        self._runtime.close_queues()


def _outcome(step: ModernStep, count: int, summary: bool, found: Any) -> Outcome:
    made, worker, written = count, 0, None
    if step.streams:
        *found, made, worker = found
    if summary:
        *found, written = found
        written = written.numpy() if hasattr(written, "numpy") else written
    return Outcome(step.unpack(*found), int(made), int(worker), written)


def _end_of_data() -> Exception:
    error: Exception = tf1.errors.OutOfRangeError(None, None, "the dataset of a step has ended")
    return error


def _value(fetch: Any) -> np.ndarray | None:
    if isinstance(fetch, tf.Operation) and fetch.type == "NoOp" and not fetch.control_inputs:
        return None  # As there is nothing to do.
    if not hasattr(fetch, "numpy"):
        raise UserError(
            f"the modern runtime cannot run {fetch!r}; pass a compat.step or a variable"
        )
    return np.asarray(fetch.numpy())
