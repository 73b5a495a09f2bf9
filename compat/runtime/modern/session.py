"""A session of the modern runtime: schedules steps on workers, or runs them in this process.

It runs all other fetches like a session of the legacy runtime.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import threading
import time
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.cluster.liveness.cluster import call_monitor
from compat.cluster.liveness.watchdog import run_with_watchdog
from compat.errors import UserError
from compat.runtime.graphs.dependence import VARIABLES
from compat.runtime.graphs.device_placement import worker_of
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.graphs.session import eagerly
from compat.runtime.modern.data import OwnData, WorkerData
from compat.runtime.modern.lift import Wanted
from compat.runtime.modern.loop import Loop
from compat.runtime.modern.step import ModernStep, Outputs
from compat.runtime.program.session import ProgramSession
from compat.runtime.program.variables import initial_value, needs_feed
from compat.runtime.session import Interrupted, Values, number_of_updates

_READS = ("ReadVariableOp", "Identity")
_CALLER = "caller"  # The key of the program's own fetches, as opposed to those of hooks.


@dataclasses.dataclass(eq=False)
class _Scheduled:
    """A closure that was scheduled, and its future result."""

    loop: Loop
    steps: int
    updates: int  # The number of updates of each step.
    result: Any
    may_be_building: bool  # Before its worker has built the function, the closure makes no step.
    place: str  # Position in a `run_many`: "inside" or "end"; "" outside of `run_many`.
    is_received: bool = False
    outcome: Outcome | None = None  # The result; None if it was lost.


class Outcome(NamedTuple):
    """The result of a call."""

    outputs: list[Any]
    made: int  # Number of steps.
    worker: int | None  # None if TensorFlow does not provide it.


class ModernSession(ProgramSession):
    """A session that schedules steps on workers, and keeps every worker busy."""

    def _begin(self, supervisor: Any, steps: Sequence[Any]) -> None:
        self._runtime = supervisor.runtime
        self._in_flight: collections.deque[_Scheduled] = collections.deque()
        self._last: dict[Loop, Outcome] = {}
        self._ended: dict[Loop, set[int | None]] = collections.defaultdict(set)
        # Each call that trains, or runs on workers, holds this lock until its end. Hooks of a
        # supervisor make calls inside such a call.
        self._turn = threading.RLock()
        self._thread = threading.local()
        # One closure at work and one in waiting for each worker.
        server = self._runtime.server
        self.num_workers = server.num_workers if server is not None else 1
        self._loops: dict[Any, Loop] = {}
        # Outcomes of the last calls of each `run_many`, which a later one returns.
        self._answers: dict[ModernStep, collections.deque[Outcome]] = collections.defaultdict(
            collections.deque
        )
        self._data: dict[ModernStep, OwnData] = {}
        self._given: collections.Counter[str] = collections.Counter()
        self._first_of_local: dict[str, np.ndarray] = {}
        self._keys = 0  # Keys by which workers find each other's tensors.
        self._steps_of: dict[Any, ModernStep | None] = {}
        super()._begin(supervisor, steps)

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(fetches, ModernStep):
            inputs = fetches.definition.arrays(args, kwargs.pop("feed_dict", None))
            arrays = [np.asarray(array)[np.newaxis] for array in _flat(inputs)]
            return self._run_many(fetches, arrays, 1)
        feed, *rest = args or (kwargs.pop("feed_dict", None),)
        if self._has_hooks and isinstance(fetches, dict):
            return self._run_with_hooks(fetches, feed, *rest, **kwargs)
        feed = self._of_specs(feed)
        flat = [self._element(fetch) for fetch in tf.nest.flatten(fetches)]
        step = self._step_that_computes(flat)
        if step is None:
            return super().run(fetches, self._in_order(flat, feed), *rest, **kwargs)
        values = self._run_part(step, flat, _components(feed or {}), is_joined=False)
        return tf.nest.pack_sequence_as(fetches, values)

    def run_many(self, step: Any, *stacked: Any, count: int | None = None) -> Values:
        if not isinstance(step, ModernStep):
            return super().run_many(step, *stacked, count=count)
        number = number_of_updates(stacked, count)
        step.definition.check_arrays(stacked)
        return self._run_many(step, stacked, number)

    def _run_many(self, step: ModernStep, stacked: Sequence[Any], count: int) -> Values:
        loop = self._loop(step)
        values: Values = {}
        done = 0
        # Other threads, such as actors, need not wait for a call that trains.
        only_looks = not (step.hands_out or loop.trains or loop.streams)
        with contextlib.nullcontext() if only_looks else self._turn:
            while done < count:
                number = loop.size(count - done, self._steps_left(loop), self._announce)
                arrays = [array[done : done + number] for array in stacked]
                place = "end" if done + number == count else "inside"
                try:
                    values = self._run_loop(step, loop, number, arrays, place)
                except tf1.errors.OutOfRangeError:
                    if not values:
                        raise
                    break
                done += number
            if self._answers[step]:
                values = self._values(step, self._answers[step].popleft())
        return step.structured(values)  # Return a copy, which the caller may change.

    def _steps_left(self, loop: Loop) -> int | None:
        if self.last_step is None:
            return None
        return max(0, self.last_step - self.planned_step) // loop.updates

    def _announce(self, size: int, secs: float) -> None:
        if self.on_build is not None:
            self.on_build(size, secs)

    def _run_loop(
        self, step: ModernStep, loop: Loop, number: int, arrays: Any, place: str
    ) -> Values:
        """Runs a step several times, with its summary if that is due."""
        due = loop.trains and self._collects(step) and self._supervisor.services.summary_due()
        # Replicas run the same function, so it always has the summary.
        if due or (loop.trains and step.is_shared and self._collects(step)):
            loop = self._loop(step, [step.summary])
        return self._values(step, self._make(loop, number, arrays, due, place))

    def _values(self, step: ModernStep, outcome: Outcome) -> Values:
        return step.unpack(*outcome.outputs[: len(step.outputs)])

    def _loop(self, step: ModernStep, more: Sequence[Any] = (), others: Any = ()) -> Loop:
        """Returns the loop of a step that also computes `more`, with further inputs `others`."""
        return self._loop_of(step, Wanted([*step.outputs, *more], [], [*step.passed, *others]))

    def _loop_of(self, step: ModernStep, wanted: Wanted) -> Loop:
        root = step.root
        key = root, wanted.key
        if key not in self._loops:
            if root not in self._data:
                self._data[root] = self._data_of(root)
            replicas = self._runtime.replicas if root.is_shared else None
            loop = Loop(self, step, wanted, self._data[root], replicas, self._given)
            loop.before_copy = self._check_building
            self._loops[key] = loop
        return self._loops[key]

    def _data_of(self, step: ModernStep) -> OwnData:
        arrays, dataset = step.definition.per_worker_data, step.definition.dataset
        with self._eagerly():
            constants = [tf.constant(array) for array in arrays]
            if not step.hands_out:
                return OwnData(constants, dataset, step.shard)
            return WorkerData(self._runtime.coordinator, constants, dataset, step.shard)

    @contextlib.contextmanager
    def _eagerly(self) -> Iterator[None]:
        """Enables eager execution in the context, with the seed of the program's graph."""
        seed = self.graph.seed
        with eagerly():
            if seed is not None:
                tf.random.set_seed(seed)
            yield

    def _run_with_hooks(self, fetches: Any, feed: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs the fetches of a program, which may be a step, and those of its hooks."""
        callers = fetches.get(_CALLER)
        fed = _components(self._of_specs(feed) or {})
        flat = {k: [self._element(f) for f in tf.nest.flatten(v)] for k, v in fetches.items()}
        every = [f for part in flat.values() for f in part]
        step = callers.step if isinstance(callers, Outputs) else self._step_that_computes(every)
        if step is None:
            return super().run(fetches, self._in_order(every, feed), *args, **kwargs)
        _check_options(*args, **kwargs)
        inputs = {t.name for t in (*step.root.stored, *step.root.passed, *fed)}
        flat = {k: [self._of_step(f, step, inputs) for f in v] for k, v in flat.items()}
        values = iter(self._run_part(step, [f for v in flat.values() for f in v], fed, True))
        return {
            key: tf.nest.pack_sequence_as(
                list(part) if isinstance(part, Outputs) else part,
                [next(values) for _ in flat[key]],
            )
            for key, part in fetches.items()
        }

    def _of_step(self, fetch: Any, step: ModernStep, inputs: set[str]) -> Any:
        """Replaces the merged summary of all steps by the summary of this step."""
        is_merged = getattr(getattr(fetch, "op", None), "type", "") == "MergeSummary"
        if is_merged and step.root.summary is not None and needs_feed(fetch, inputs):
            return step.root.summary
        return fetch

    def _run_part(
        self, step: ModernStep, fetches: Sequence[Any], feed: Any, is_joined: bool
    ) -> list[Any]:
        """Runs the part of a step that computes the fetches, and then the other fetches.

        `is_joined` means that hooks have added fetches, which need values of the same call as the
        program's. Otherwise the values of a step that trains may be those of an earlier call.
        """
        names = [tensor.name for tensor in step.outputs]
        computed = [f for f in fetches if self._is_computed_by(f, step)]
        tensors = _once([f for f in computed if not isinstance(f, tf.Operation)])
        operations = [f for f in computed if isinstance(f, tf.Operation)]
        more = [t for t in tensors if t.name not in names]
        is_whole = is_joined and not operations and {t.name for t in tensors} >= set(names)
        fed = list(feed)
        if is_whole:
            wanted = Wanted([*step.outputs, *more], [], fed)
        else:
            wanted = Wanted(tensors, operations, fed)
        loop = self._loop_of(step, wanted)
        arrays = [np.asarray(feed[t])[np.newaxis] for t in fed]
        with self._turn:
            wait = bool(more) if is_whole else not loop.trains or is_joined
            outputs = self._make(loop, 1, arrays, wait=wait).outputs
        values = {t.name: value for t, value in zip(wanted.tensors, outputs)}
        others = [f for f in fetches if f not in computed]
        values.update(zip([f.name for f in others], self._others(others)))
        return [values.get(f.name) for f in fetches]

    def _others(self, fetches: Sequence[Any]) -> list[Any]:
        """Returns fetches that depend on no call of a step: the planned step, and variables."""
        return list(self.call(list(fetches), self._in_order(fetches))) if fetches else []

    def _in_order(self, fetches: Sequence[Any], feed: Any = None) -> Any:
        """Waits for scheduled steps if fetches depend on them; returns the feed of the call.

        A call that reads only the global step does not wait: it is fed the planned step.
        """
        if all(scheduled.is_received for scheduled in self._in_flight):
            return feed
        step, needed = self._runtime.global_step_of(self.graph), set(dependencies(fetches))
        used = {op for op in needed if op.type in VARIABLES}
        if not used:
            return feed
        users = [op for op in needed if any(t.op in used for t in op.inputs)]
        if step is not None and used == {step.op} and all(op.type in _READS for op in users):
            planned = dict.fromkeys([op.outputs[0] for op in users], self.planned_step)
            return {**planned, **(feed or {})}
        self.settle()
        return feed

    def _element(self, fetch: Any) -> Any:
        """Returns a fetch as a tensor or an operation of the graph."""
        if isinstance(fetch, str):
            fetch = self._of_names(self.graph.as_graph_element(fetch))
        return self.graph.as_graph_element(fetch) if isinstance(fetch, tf.Variable) else fetch

    def _is_computed_by(self, fetch: Any, step: ModernStep) -> bool:
        return self._step_that_computes([fetch]) is step.root

    def _step_that_computes(self, fetches: Sequence[Any]) -> ModernStep | None:
        """Returns the step whose inputs or updates the fetches need, or None.

        Raises:
          UserError: The fetches need those of two steps.
        """
        flat = [f for f in fetches if isinstance(f, (tf.Tensor, tf.Operation))]
        key = tuple(f.name for f in flat)
        if key not in self._steps_of:
            steps = [s for s in self._runtime.steps_of(self.graph) if isinstance(s, ModernStep)]
            needed = set(dependencies(flat))
            matching = [s for s in steps if not needed.isdisjoint(t.op for t in s.inputs)]
            if len(matching) > 1:
                raise UserError("run() was given values of two steps; run one after the other")
            matching += [s for s in steps if not needed.isdisjoint(s.values())]
            self._steps_of[key] = matching[0] if matching else None
        return self._steps_of[key]

    def name_of_own(self, name: str) -> str:
        """Returns the name by which functions of this session find a worker's own variable."""
        return f"local/{id(self)}/{name}"

    def first_of_local(self, variable: Any) -> np.ndarray:
        """Returns the initial value of a local variable."""
        name = variable.op.name
        if name not in self._first_of_local:
            self._first_of_local[name] = np.asarray(self.call(initial_value(variable)))
        return self._first_of_local[name]

    def taken(self, edges: Sequence[Any], targets: Sequence[Any], count: int) -> list[Any]:
        """Runs the part of a step that a session must run, such as queues, for `count` updates.

        Args:
          edges: the tensors to compute for each update, such as outputs of queues and readers.
          targets: the operations to run for each update.
          count: the number of updates.

        Returns:
          For each edge, an array with a row for each update.
        """
        if not edges and not targets:
            return []
        rows = [self.call([list(edges), list(targets)])[0] for _ in range(count)]
        return [np.stack(column) for column in zip(*rows)]

    def next_keys(self, count: int) -> int:
        """Returns the first of `count` keys, by which workers find each other's tensors."""
        first, self._keys = self._keys, self._keys + count
        return first

    def _make(
        self, loop: Loop, count: int, arrays: Any, wait: bool = False, place: str = ""
    ) -> Outcome:
        arguments = self._made_eagerly(lambda: loop.arguments(arrays, count))
        is_first, began = not loop.is_built(count), time.monotonic()
        if loop.step.hands_out:
            # Wait for the first call of a size, to measure the time of building it.
            outcome = self._run_on_workers(loop, count, arguments, wait, is_first, place)
        else:
            outcome = self._run_alone(loop, count, arguments, is_first)
        loop.record(count, time.monotonic() - began)
        return outcome

    def _run_alone(self, loop: Loop, count: int, arguments: Any, is_first: bool) -> Outcome:
        results = self._wait(lambda: loop.function(count)(*arguments), is_long=is_first)
        outcome = _outcome(loop, count, results)
        if not outcome.made:
            raise _end_of_data()
        if loop.trains and loop.completes_update:
            self.planned_step += outcome.made * loop.updates
        self._count(loop, outcome)
        self._record(loop, outcome)
        return outcome

    def _run_on_workers(
        self, loop: Loop, count: int, arguments: Any, is_asked: bool, is_first: bool, place: str
    ) -> Outcome:
        if loop.calls_of_an_update > 1 and loop.completes_update:
            # Place it after the others, so that it finds all gradients, and before those of the
            # next update.
            is_asked = True
            while self._in_flight:
                self._collect()
        wait = is_asked or is_first
        while True:
            if len(self._ended[loop]) < self.num_workers:
                self._schedule(loop, count, arguments, place)
            elif all(scheduled.loop is not loop for scheduled in self._in_flight):
                raise _end_of_data()
            is_made = False
            # Wait for the first call: the session needs its values, and its errors should be raised
            # at once. At the end of the data each call waits for one that was scheduled before.
            while self._in_flight and (wait or not is_made and self._must_collect(loop)):
                is_made = self._collect() is loop
            goes_on = not wait and len(self._ended[loop]) < self.num_workers
            if loop in self._last and (is_made or goes_on):
                if is_asked:  # The result is for this call, not for an earlier one.
                    self._answers[loop.step].clear()
                return self._last[loop]

    def _must_collect(self, loop: Loop) -> bool:
        too_many = len(self._in_flight) > 2 * self.num_workers
        return too_many or loop not in self._last or len(self._ended[loop]) >= self.num_workers

    def _schedule(self, loop: Loop, count: int, arguments: Any, place: str) -> None:
        # The first call traces it; then all servers store it.
        schedule = self._runtime.coordinator.schedule
        function = loop.function(count)
        result = self._wait(functools.partial(schedule, function, args=arguments))
        updates = loop.updates if loop.trains and loop.completes_update else 0
        building = loop.is_building(count)
        self._in_flight.append(_Scheduled(loop, count, updates, result, building, place))
        self.planned_step += count * updates

    def _collect(self) -> Loop | None:
        """Waits for the oldest closure; returns its loop if it made any steps."""
        scheduled = self._in_flight.popleft()
        try:
            self._receive(scheduled)
        except Interrupted:
            self._in_flight.appendleft(scheduled)
            self._give_up_building()
            raise
        if scheduled.outcome is None:
            # The steps are made; the values of another call replace the lost ones.
            return scheduled.loop
        if not scheduled.outcome.made:
            return None
        self._record(scheduled.loop, scheduled.outcome)
        if scheduled.place == "end":
            self._answers[scheduled.loop.step].append(scheduled.outcome)
        return scheduled.loop

    def _receive(self, scheduled: _Scheduled) -> None:
        """Waits for a closure, and counts its steps."""
        if scheduled.is_received:
            return
        loop, count = scheduled.loop, scheduled.steps
        try:
            outcome = _outcome(loop, count, self._wait(scheduled.result.fetch))
        except tf1.errors.UnavailableError as error:
            # TensorFlow 2.4 leaves values on the worker that computed them, and loses them with it.
            if loop not in self._last or "/job:worker" not in str(error):
                raise
            scheduled.is_received = True
            return
        if outcome.made < count:
            self._ended[loop].add(outcome.worker)
            self.planned_step -= (count - outcome.made) * scheduled.updates
        if outcome.made and not loop.streams:
            # None if TensorFlow does not provide it.
            worker = worker_of(private.device_of(scheduled.result))
            outcome = outcome._replace(worker=worker)
        if outcome.made:
            self._count(loop, outcome)
        scheduled.is_received, scheduled.outcome = True, outcome

    def _give_up_building(self) -> None:
        """Drops pending calls that have made no step, as workers may still build the function."""
        for scheduled in [*self._in_flight]:
            if scheduled.may_be_building and not scheduled.is_received:
                self._in_flight.remove(scheduled)
                self.planned_step -= scheduled.steps * scheduled.updates

    def settle(self) -> None:
        with self._turn:
            for scheduled in self._in_flight:
                self._receive(scheduled)

    def _count(self, loop: Loop, outcome: Outcome) -> None:
        if loop.trains and loop.is_whole and self.on_updates is not None:
            values = self._values(loop.step, outcome)
            self.on_updates(outcome.worker, outcome.made * loop.updates, values)

    def _record(self, loop: Loop, outcome: Outcome) -> None:
        self._last[loop] = outcome
        if loop.trains:
            step, collects = loop.step, self._collects(loop.step)
            values, summary = None, None
            if loop.is_whole:
                values = self._values(step, outcome)
                summary = next(iter(outcome.outputs[len(step.outputs) :]), None)
            self._supervisor.services.after_training_call(self, values, summary, collects)

    def _collects(self, step: ModernStep) -> bool:
        """Returns whether summaries come from a step's summary operations, not from its values."""
        supervisor = self._supervisor
        default = supervisor.summary_op is supervisor.USE_DEFAULT
        return step.summary is not None and default and supervisor.services.running

    def _recoverable(self, function: Callable[[], Any]) -> Any:
        # A coordinator that has lost a server exits, and has to be restarted.
        return function() if self._runtime.hands_out else super()._recoverable(function)

    def _made_eagerly(self, function: Callable[[], Any]) -> Any:
        with eagerly():
            return function()

    def _wait(self, function: Callable[[], Any], is_long: bool = False) -> Any:
        """Runs `function` eagerly and returns its result; raises if a task of the cluster is lost.

        Raises `Interrupted` when `is_overdue` returns true. Without a coordinator, checks this
        only if `is_long`.
        """
        is_given_up = threading.Event()

        def work() -> Any:
            self._thread.is_given_up = is_given_up
            return self._made_eagerly(function)

        try:
            if self._runtime.coordinator is None or self._runtime.server is None:
                return run_with_watchdog(work, self.check_overdue, 0.5) if is_long else work()
            poll = call_monitor(self._runtime.server, workers=True, then=self.check_overdue)
            return self._recoverable(lambda: run_with_watchdog(work, poll))
        except Interrupted:
            is_given_up.set()
            raise

    def _check_building(self) -> None:
        """Raises `Interrupted` if the result that this thread builds is no longer needed."""
        if self._thread.is_given_up.is_set():
            raise Interrupted
        self.check_overdue()

    def drain(self) -> Iterator[Values]:
        while self._in_flight or any(self._answers.values()):
            for step, answers in [*self._answers.items()]:
                while answers:
                    yield step.structured(self._values(step, answers.popleft()))
            with self._turn:
                place = self._in_flight[0].place if self._in_flight else ""
                loop = self._collect() if self._in_flight else None
            if loop is not None and not place:
                yield loop.step.structured(self._values(loop.step, self._last[loop]))

    def restart(self, step: Any) -> None:
        if not isinstance(step, ModernStep):
            super().restart(step)
            return
        with self._turn:
            loops = {loop for (root, _), loop in self._loops.items() if root is step.root}
            while any(scheduled.loop in loops for scheduled in self._in_flight):
                self._collect()
            for loop in loops:
                self._ended.pop(loop, None)
                self._last.pop(loop, None)
                self._answers.pop(loop.step, None)
            if step.root in self._data:
                self._data[step.root].restart()

    def any_worker(self, flag: bool) -> bool:
        replicas = self._runtime.replicas
        if replicas is None:
            return flag
        return bool(self._made_eagerly(lambda: replicas.any(flag)))

    def leave(self) -> None:
        super().leave()
        # All workers stop together: the remaining ones would consider the first as lost.
        self.any_worker(False)

    def close(self) -> None:
        self._in_flight.clear()
        super().close()


def _once(tensors: Sequence[Any]) -> list[Any]:
    return [*{tensor.name: tensor for tensor in tensors}.values()]


def _flat(arrays: Sequence[Any]) -> list[Any]:
    return [part for each in arrays for part in tf.nest.flatten(each, expand_composites=True)]


def _components(feed: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns a feed with sparse tensors split into their components."""
    components: dict[Any, Any] = {}
    for key, value in feed.items():
        parts = tf.nest.flatten(key, expand_composites=True)
        components.update(zip(parts, value if len(parts) > 1 else [value]))
    return components


def _check_options(options: Any = None, run_metadata: Any = None) -> None:
    del run_metadata
    if options is not None and options.ByteSize():
        raise UserError(
            "RunOptions, such as the trace that ProfilerHook asks for, are for calls of this "
            "process, and workers run the step; use tf.profiler, or --runtime=legacy"
        )


def _outcome(loop: Loop, count: int, results: Any) -> Outcome:
    steps, worker = count, 0
    if loop.streams:
        *results, steps, worker = results
    outputs = [each.numpy() if hasattr(each, "numpy") else each for each in results]
    return Outcome(outputs, int(steps), int(worker))


def _end_of_data() -> Exception:
    error: Exception = tf1.errors.OutOfRangeError(None, None, "the dataset of a step has ended")
    return error
