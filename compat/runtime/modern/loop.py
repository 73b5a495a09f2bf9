"""How a step is run many times in a call: the function that a worker, or this process, runs."""

from __future__ import annotations

import collections
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import release, tf, tf1
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.modern.data import OwnData
from compat.runtime.modern.gradient_accumulation import accumulations
from compat.runtime.modern.lift import Lifted, Wanted
from compat.runtime.modern.step import ModernStep
from compat.runtime.program.variables import global_step

MOST_UNROLLED = 50
_STEPS_A_TURN = 10
# To trace 50 updates, and to optimize them on each worker, takes seconds that only thousands of
# updates win back: loops of a size are made of short ones until a run has asked for so many.
_SHORT, _UPDATES_BEFORE = 10, 200


class Loop:
    """Runs a step, or another part of its graph, in a session.

    Attributes:
      step: the step.
      trains: whether a run updates the model.
      calls_of_an_update: how many calls make one update.
      is_whole: whether its first values are those of the step.
      completes_update: whether the call whose arguments were made last does so.
      before_copy: called while a function is made, which takes up to a second for each copy.
    """

    def __init__(
        self,
        session: Any,
        step: ModernStep,
        wanted: Wanted,
        data: OwnData,
        replicas: Any,
        given: collections.Counter[str],
    ) -> None:
        self._session, self.step, self._data, self._replicas = session, step, data, replicas
        self.is_whole = [t.name for t in wanted.tensors[: len(step.outputs)]] == [
            tensor.name for tensor in step.outputs
        ]
        used = set(dependencies([*wanted.tensors, *wanted.operations]))
        self._told = [each for each in accumulations(session.graph) if each.is_last.op in used]
        flags = [each.is_last for each in self._told]
        self._passed = wanted.given
        self._lifted = Lifted(session, [*step.stored, *self._passed, *flags], wanted)
        self._given = given  # How many calls have given gradients, by what tells them.
        self.calls_of_an_update = max((each.calls for each in self._told), default=1)
        self.completes_update = True
        with session.graph.as_default():
            counted, known = global_step(), tf1.trainable_variables()
        learns = self._lifted.writes(known)
        self.trains = learns if counted is None else self._lifted.writes([counted])
        self.updates, self.streams = step.updates, step.streams
        self._asked: collections.Counter[int] = collections.Counter()  # Updates by size of loop.
        self._functions: dict[int, Any] = {}
        self.before_copy: Callable[[], object] = lambda: None

    def sizes(self, count: int) -> Iterator[int]:
        """Yields how many of `count` steps each of the next calls makes."""
        most = count if self.step.hands_out else MOST_UNROLLED
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

    def function(self, count: int) -> Any:
        """Returns what runs `count` steps, and returns the values of the last.

        Of a dataset also how many were made, and the index of the worker.
        """
        size = 0 if self.streams else count  # A stream is told how many: it may end before.
        if size not in self._functions:
            self._lifted.prepare()
            if self.streams:
                self._functions[size] = release.traced(self._on_elements)
            else:
                # TensorFlow 2.4 counts the arguments of a `functools.partial` wrongly.
                self._functions[size] = release.traced(
                    lambda source, *stacked: self._on_arrays(count, source, *stacked)
                )
        return self._functions[size]

    def _copy(
        self, resources: Mapping[str, Any], tensors: Sequence[Any], number: Any, key: Any, copy: int
    ) -> list[Any]:
        """Copies the step into a function; `number` is that of the update in the call."""
        many = len(self._lifted.keys)
        keys = [key + number * many + i for i in range(many)]
        return self._lifted(tensors, resources, copy, keys)

    def _on_arrays(self, count: int, source: Any, key: Any, *stacked: Any) -> Any:
        data = self._data.opened(source)
        resources = self._lifted.resources()
        # Else it would draw the random numbers of the short loops before it again.
        first_copy = self._short if count > self._short else 0

        def unrolled(first: Any, count: int) -> Any:
            """Runs the steps from `first` on; returns the values of the last."""
            for i in range(count):
                self.before_copy()
                inputs = [*data.arrays, *[array[first + i] for array in stacked]]
                last = self._copy(resources, inputs, first + i, key, first_copy + i)
            return last

        def turn(number: Any) -> Any:
            with tf.control_dependencies(unrolled(number * _STEPS_A_TURN, _STEPS_A_TURN)[:1]):
                return [number + 1]

        if count <= MOST_UNROLLED:
            return unrolled(0, count)
        turns, rest = divmod(count - 1, _STEPS_A_TURN)
        (done,) = tf.while_loop(
            lambda number: number < turns, turn, [tf.constant(0)], parallel_iterations=1
        )
        with tf.control_dependencies([done]):
            return unrolled(turns * _STEPS_A_TURN, rest + 1)

    def _on_elements(self, source: Any, key: Any, count: Any, *stacked: Any) -> Any:
        """Runs steps as long as there are elements, one after the other."""
        data = self._data.opened(source)
        resources = self._lifted.resources()
        first = self._lifted.empty()

        def turn(made: Any, _: Any, *last: Any) -> Any:
            element = data.iterator.get_next_as_optional()

            def on_element() -> Any:
                flat = tf.nest.flatten(element.get_value(), expand_composites=True)
                inputs = [*flat, *data.arrays, *[array[made] for array in stacked]]
                number = tf.cast(made, tf.int32)
                return [made + 1, *self._copy(resources, inputs, number, key, 0)]

            def on_end() -> Any:
                return [tf.identity(tensor) for tensor in (made, *last)]

            there = element.has_value()
            if self._replicas is not None:  # They make each step together, or none of them does.
                there = self._replicas.all(there)
            made, *last = tf.cond(there, on_element, on_end)
            return (made, there, *last)

        shapes = [tf.TensorShape([])] * 2
        shapes += [tf.TensorShape(None) if t.shape.rank else t.shape for t in first]
        made, _, *last = tf.while_loop(
            lambda made, there, *_: tf.logical_and(there, made < count),
            turn,
            [tf.constant(0, tf.int64), tf.constant(True), *first],
            shape_invariants=shapes,
            parallel_iterations=1,
        )
        return [*last, made, data.worker]

    def arguments(self, stacked: Sequence[Any], count: int) -> Sequence[Any]:
        """Returns the arguments of a call of `function(count)`."""
        # To the placeholders' types, as feeds of TensorFlow's session are.
        arrays = [
            np.asarray(array, tensor.dtype.as_numpy_dtype)
            for array, tensor in zip(stacked, self._passed)
        ]
        last = []
        for accumulation in self._told:
            self._given[accumulation.is_last.name] += 1
            given = self._given[accumulation.is_last.name]
            last.append(given % accumulation.calls == 0)
        self.completes_update = any(last) or not last
        arrays += [np.array([flag]) for flag in last]
        arrays += self._session.taken(self._lifted.edges, self._lifted.targets, count)
        counts = [tf.constant(count, tf.int64)] if self.streams else []
        key = tf.constant(self._session.next_keys(count * len(self._lifted.keys)), tf.int32)
        return (self._data.source, key, *counts, *[tf.convert_to_tensor(a) for a in arrays])
