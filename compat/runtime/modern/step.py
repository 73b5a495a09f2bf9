"""A step of the modern runtime: the lifted function, and the loop in which a worker runs it."""

from __future__ import annotations

import collections
import copy
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import release, tf
from compat.errors import UserError
from compat.runtime.graphs.device_placement import Placed
from compat.runtime.modern import graphs
from compat.runtime.modern.data import OwnData, WorkerData
from compat.runtime.modern.lift import Lifted, lift
from compat.runtime.session import Step, StepDefinition, fed_name

if TYPE_CHECKING:
    from compat.runtime.modern.runtime import ModernRuntime

MOST_UNROLLED = 50
_STEPS_A_TURN = 10
# To trace 50 updates, and to optimize them on each worker, takes seconds that only thousands of
# updates win back: loops of a size are made of short ones until a run has asked for so many.
_SHORT, _UPDATES_BEFORE = 10, 200


class ModernStep(Step):
    """A lifted step, and the loop in which a worker runs it."""

    def __init__(self, definition: StepDefinition, runtime: ModernRuntime) -> None:
        alone = definition.on_coordinator
        coordinator = None if alone else runtime.coordinator
        server = None if alone else runtime.server
        self._definition, self.updates = definition, definition.updates
        self._replicas = None if alone else runtime.replicas
        self.on_coordinator = coordinator is None  # So it runs in this process.
        self.streams = definition.dataset is not None
        shard = 0, 1
        if server is not None:
            # Replicas read their own shards; a coordinator reads none, nor does a task that serves.
            shard = server.trainer_index if server.synchronous else 0, server.num_workers
        arrays = [tf.constant(array) for array in definition.per_worker_data]
        element = definition.dataset(*shard).element_spec if definition.dataset else None
        specs = tf.nest.flatten(element, expand_composites=True) if self.streams else []
        components = len(specs)
        specs += [tf.TensorSpec(t.shape, t.dtype) for t in arrays]
        # Without names, which are those of placeholders no more than on the legacy runtime.
        specs += [
            tf.TensorSpec(spec.shape, spec.dtype) if isinstance(spec, tf.TensorSpec) else spec
            for spec in definition.signature
        ]

        def on_flat(*tensors: Any) -> Mapping[str, Any]:
            if not self.streams:
                return definition.function(*tensors)
            flat, rest = list(tensors[:components]), tensors[components:]
            packed = tf.nest.pack_sequence_as(element, flat, expand_composites=True)
            return definition.function(packed, *rest)

        self._hook_graph = runtime.hook_graph
        self._parts: dict[Any, ModernStep] = {}  # By what they return and take.
        self._of_one_graph = [self]  # With all that were selected, also from one another.
        # How many calls of all these have given gradients, by what tells them which is last.
        self._given: collections.Counter[str] = collections.Counter()
        lifted = lift(on_flat, specs, runtime.placement)
        self._queues = lifted.queues()
        fed = [] if self._queues is None else [*self._queues.names]
        fed += [each.is_last.name for each in lifted.accumulations]
        self._take(lifted.feeding(fed) if fed else lifted)
        if coordinator is not None and graphs.calls_python(self._lifted.graph_def):
            raise UserError(
                "the step calls Python (tf.py_func, tf.py_function or tf.numpy_function), and the "
                "workers that run it have no Python of the program; use operations of TensorFlow, "
                "make the values before session.run(), or use --runtime=legacy"
            )
        if coordinator is None:
            self._data = OwnData(arrays, definition.dataset, shard)
        else:
            self._data = WorkerData(coordinator, arrays, definition.dataset, shard)

    def _take(self, lifted: Lifted) -> None:
        self._lifted = lifted
        self._alone: ModernStep = self  # Of what it `always` computes.
        self.names, self.others, self.structures = lifted.names, lifted.others, lifted.structures
        self.trains, self.outside = lifted.trains, lifted.outside
        self._asked: collections.Counter[int] = collections.Counter()  # Updates by size of loop.
        self._told = [each for each in lifted.accumulations if each.is_last.name in lifted.fed]
        # How many calls make one update, and whether the one whose arguments were made last does.
        self.calls_of_an_update = max((each.calls for each in self._told), default=1)
        self.completes_update = True
        self.summarizes = lifted.summarizes
        self.tensors, self.summary = self._hook_graph.add_step(lifted.specs, self.summarizes)
        self.operations_by_name = self._hook_graph.add_operations(lifted.updates)
        self._hook_graph.origins.update(
            (id(getattr(found, "op", found)), (self._of_one_graph[0], name))
            for name, found in {**self.tensors, **self.operations_by_name}.items()
        )
        if self.trains and self._hook_graph.shown is None:
            self._hook_graph.shown = self
        self._loops: dict[tuple[int, bool], Any] = {}
        # Each takes up to a second to make, and may raise what interrupts that.
        self.before_copy: Callable[[], object] = lambda: None

    def begin_session(self) -> None:
        """Forgets what runs of the step have left: local variables of workers, iterators."""
        self.restart()
        for step in self._of_one_graph:
            step._loops.clear()
            step._asked.clear()
        self._given.clear()

    def select(self, *names: str, inputs: Sequence[str] | None = None) -> ModernStep:
        selected, places = copy.copy(self), self._definition.positions(inputs)
        signature = [self._definition.signature[place] for place in places]
        selected._definition = self._definition._replace(signature=signature)
        selected._take(self._lifted.select(names, places, self._definition.parameters()))
        self._of_one_graph.append(selected)
        return selected

    def always(self, *names: str) -> None:
        """Makes calls in which hooks fetch nothing else compute these values alone."""
        self._alone = self.select(*names)

    def fetching(self, names: Sequence[str]) -> ModernStep:
        """Returns the step of a call in which hooks fetch these of its values."""
        return self._alone if set(names) <= set(self._alone.tensors) else self

    def part(self, names: Sequence[str], fed: Any) -> tuple[ModernStep, list[Any]]:
        """Returns the step that computes some values from what is fed, and its arrays."""
        feed = {fed_name(key): array for key, array in (fed or {}).items()}
        specs = dict(zip(self._definition.parameters(), self._definition.signature))
        inputs = [name for name, spec in specs.items() if spec.name in feed]
        key = tuple(names), tuple(inputs)
        if key not in self._parts:
            self._parts[key] = self.select(*names, inputs=inputs)
        step = self._parts[key]
        return step, step.given((), feed)

    def restart(self) -> None:
        """Begins the dataset anew, and the queues of input, whose threads end."""
        self._data.restart()
        self.close_queues()

    def close_queues(self) -> None:
        """Ends the threads that fill its queues of input, if there are any."""
        if self._queues is not None:
            self._queues.close()

    def with_summary(self, asked: bool) -> bool:
        """Whether a call returns the step's summary: if it has one, and that is asked for.

        Workers that make each step together run the same function, so theirs always does.
        """
        return self.summarizes and (asked or self._replicas is not None)

    def sizes(self, count: int) -> Iterator[int]:
        """Yields how many of `count` steps each of the next calls makes."""
        most = MOST_UNROLLED if self.on_coordinator else count
        if self.calls_of_an_update > 1:
            most = 1
        while count > 0:
            whole = size = min(most, count)
            if whole > self._short and not self.streams:  # A stream's loop fits any number.
                self._asked[whole] += whole * self.updates
                if self._asked[whole] <= _UPDATES_BEFORE:
                    size = self._short
            for made in range(0, whole, size):
                yield min(size, whole - made)
            count -= whole

    @property
    def _short(self) -> int:
        """Steps of a short loop."""
        return max(1, _SHORT // self.updates)

    def loop(self, count: int, summary: bool = False) -> Any:
        """Returns the function that runs `count` steps, and returns the values of the last.

        With `summary` also its serialized summary; of a dataset also how many were made, and the
        index of the worker.
        """
        # A stream is told how many: it may end before.
        key = (0 if self.streams else count, summary)
        if key not in self._loops:
            if self.streams:
                self._loops[key] = release.traced(
                    lambda source, count, *stacked: self._on_elements(
                        summary, source, count, *stacked
                    )
                )
            else:
                # TensorFlow 2.4 counts the arguments of a `functools.partial` wrongly.
                self._loops[key] = release.traced(
                    lambda source, *stacked: self._on_arrays(summary, count, source, *stacked)
                )
        return self._loops[key]

    def _on_arrays(self, summary: bool, count: int, source: Any, *stacked: Any) -> Any:
        data = self._data.opened(source)
        resources = self._lifted.resources(not self.on_coordinator)
        # Else it would draw the random numbers of the short loops before it again.
        first_copy = self._short if count > self._short else 0

        def unrolled(first: Any, count: int) -> Any:
            """Runs the steps from `first` on; returns the values of the last."""
            for i in range(count):
                self.before_copy()
                inputs = [*data.arrays, *[array[first + i] for array in stacked]]
                last = self._lifted(inputs, resources, first_copy + i, summary)
            return last

        def turn(number: Any) -> Any:
            with tf.control_dependencies(unrolled(number * _STEPS_A_TURN, _STEPS_A_TURN)[:1]):
                return (number + 1,)

        if count <= MOST_UNROLLED:
            return unrolled(0, count)
        # For more the graph would take too long to make. Each turn of a `while_loop` makes the
        # worker and all parameter servers agree to continue, so a turn has several steps.
        turns, rest = divmod(count - 1, _STEPS_A_TURN)
        (done,) = tf.while_loop(
            lambda number: number < turns, turn, [tf.constant(0)], parallel_iterations=1
        )
        with tf.control_dependencies([done]):
            return unrolled(turns * _STEPS_A_TURN, rest + 1)

    def _on_elements(self, summary: bool, source: Any, count: Any, *stacked: Any) -> Any:
        """Runs steps as long as there are elements, one after the other."""
        data = self._data.opened(source)
        resources = self._lifted.resources(not self.on_coordinator)
        first = self._lifted.empty(summary)

        def turn(made: Any, _: Any, *last: Any) -> Any:
            element = data.iterator.get_next_as_optional()

            def on_element() -> Any:
                flat = tf.nest.flatten(element.get_value(), expand_composites=True)
                arrays = [array[made] for array in stacked]
                inputs = [*flat, *data.arrays, *arrays]
                return [made + 1, *self._lifted(inputs, resources, summary=summary)]

            def on_end() -> Any:
                return [tf.identity(tensor) for tensor in (made, *last)]

            there = element.has_value()
            if self._replicas is not None:  # They make each step together, or none of them does.
                there = self._replicas.all(there)
            made, *last = tf.cond(there, on_element, on_end)
            return (made, there, *last)

        shapes = [tf.TensorShape(shape) for shape in ([], [], [len(self.names)])]
        shapes += [tf.TensorShape(None)] * (len(first) - 1)
        made, _, *last = tf.while_loop(
            lambda made, there, *_: tf.logical_and(there, made < count),
            turn,
            [tf.constant(0, tf.int64), tf.constant(True), *first],
            shape_invariants=shapes,
            parallel_iterations=1,
        )
        return [*last, made, data.worker]

    def graph_def(self) -> bytes:
        return bytes(self._lifted.graph_def.SerializeToString())

    def operations(self) -> list[Placed]:
        return self._lifted.operations()

    def given(self, arrays: Sequence[Any], feed_dict: Any) -> list[Any]:
        """Returns the arrays of a call in the order of the signature."""
        return self._definition.arrays(arrays, feed_dict)

    def arguments(self, stacked: Sequence[Any], count: int) -> Sequence[Any]:
        """Returns the arguments of a call of `loop(count)`."""
        self._definition.check_arrays(stacked)
        # To the signature's types, as feeds of the legacy runtime are.
        arrays = [
            np.asarray(array, spec.dtype.as_numpy_dtype)
            for array, spec in zip(stacked, self._definition.signature)
        ]
        if self._queues is not None:
            fed = self._lifted.fed
            arrays += self._queues.take(fed[: len(fed) - len(self._told)], count)
        last = []
        for accumulation in self._told:
            self._given[accumulation.is_last.name] += 1
            given = self._given[accumulation.is_last.name]
            last.append(given % accumulation.calls == 0)
        self.completes_update = any(last) or not last
        arrays += [np.array([flag]) for flag in last]
        counts = [tf.constant(count, tf.int64)] if self.streams else []
        return (self._data.source, *counts, *[tf.convert_to_tensor(array) for array in arrays])
