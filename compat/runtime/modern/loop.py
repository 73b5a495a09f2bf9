"""Runs a step many times in a call: builds the function that a worker, or this process, runs."""

from __future__ import annotations

import collections
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from compat._tensorflow import release, tf, tf1
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.modern.call_size import MOST_UNROLLED, STEPS_A_TURN, CallSizes
from compat.runtime.modern.data import OwnData
from compat.runtime.modern.gradient_accumulation import accumulations
from compat.runtime.modern.lift import Lifted, Wanted
from compat.runtime.modern.step import ModernStep
from compat.runtime.program.variables import global_step


class Loop:
    """Runs a step, or another part of its graph, in a session.

    Attributes:
      step: the step.
      trains: whether a run updates the model.
      calls_of_an_update: how many calls make one update.
      is_whole: whether it fetches all outputs of the step, followed by any other tensors.
      completes_update: whether the call for which `arguments` was last used completes an update.
      before_copy: called while a function is made, which takes up to a second for each copy.
    """

    def __init__(
        self,
        session: Any,
        step: ModernStep,
        wanted: Wanted,
        data: OwnData,
        replicas: Any,
        added: collections.Counter[str],
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
        self._given = added  # By flag, the number of calls that have added gradients.
        self.calls_of_an_update = max((each.calls for each in self._told), default=1)
        self.completes_update = True
        with session.graph.as_default():
            counted, known = global_step(), tf1.trainable_variables()
        learns = self._lifted.writes(known)
        self.trains = learns if counted is None else self._lifted.writes([counted])
        self.updates, self.streams = step.updates, step.streams
        workers = session.num_workers if step.hands_out else 0
        self._sizes = CallSizes(warm_up=2 * workers)
        self._functions: dict[int, Any] = {}
        self.before_copy: Callable[[], object] = lambda: None

    def size(self, count: int, left: int | None, announce: Callable[[int, float], object]) -> int:
        """Returns how many of `count` steps the next call makes; see `CallSizes.choose`."""
        if self.streams and self.calls_of_an_update == 1:
            return count if self.step.hands_out else min(count, MOST_UNROLLED)
        # Random numbers with a seed that each function counts separately would differ in a larger
        # call.
        if self.calls_of_an_update > 1 or self._lifted.draws_in_calls:
            return 1
        most = count if self.step.hands_out else min(count, MOST_UNROLLED)
        return self._sizes.choose(most, left, announce)

    def record(self, count: int, secs: float) -> None:
        """Records how long a call of `count` steps took."""
        self._sizes.record(self._size(count), secs)

    def is_building(self, count: int) -> bool:
        """Returns whether the function for `count` steps may still be under construction."""
        return self._sizes.is_building(self._size(count))

    def is_built(self, count: int) -> bool:
        """Whether the function for a call of `count` steps has been made."""
        return self._size(count) in self._functions

    def _size(self, count: int) -> int:
        # The function of a stream takes the count as an argument.
        return 0 if self.streams else count

    def function(self, count: int) -> Any:
        """Returns the function that runs `count` steps and returns the values of the last.

        With a dataset it also returns the number of steps, and the index of the worker.
        """
        size = self._size(count)
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
        self, resources: Mapping[str, Any], tensors: Sequence[Any], number: Any, key: Any
    ) -> list[Any]:
        """Copies the step into a function; `number` is the update's position in the call."""
        many = len(self._lifted.keys)
        keys = [key + number * many + i for i in range(many)]
        return self._lifted(tensors, resources, keys)

    def _on_arrays(self, count: int, source: Any, key: Any, *stacked: Any) -> Any:
        data = self._data.opened(source)
        resources = self._lifted.resources()

        def unrolled(first: Any, count: int) -> Any:
            """Runs the steps from `first` on; returns the values of the last."""
            for i in range(count):
                self.before_copy()
                inputs = [*data.arrays, *[array[first + i] for array in stacked]]
                last = self._copy(resources, inputs, first + i, key)
            return last

        def turn(number: Any) -> Any:
            with tf.control_dependencies(unrolled(number * STEPS_A_TURN, STEPS_A_TURN)[:1]):
                return [number + 1]

        if count <= MOST_UNROLLED:
            return unrolled(0, count)
        turns, rest = divmod(count - 1, STEPS_A_TURN)
        (done,) = tf.while_loop(
            lambda number: number < turns, turn, [tf.constant(0)], parallel_iterations=1
        )
        with tf.control_dependencies([done]):
            return unrolled(turns * STEPS_A_TURN, rest + 1)

    def _on_elements(self, source: Any, key: Any, count: Any, *stacked: Any) -> Any:
        """Runs a step on each of up to `count` elements of the dataset, one after the other."""
        data = self._data.opened(source)
        resources = self._lifted.resources()
        first = self._lifted.empty()

        def turn(done: Any, _: Any, *last: Any) -> Any:
            element = data.iterator.get_next_as_optional()

            def on_element() -> Any:
                flat = tf.nest.flatten(element.get_value(), expand_composites=True)
                inputs = [*flat, *data.arrays, *[array[done] for array in stacked]]
                number = tf.cast(done, tf.int32)
                return [done + 1, *self._copy(resources, inputs, number, key)]

            def on_end() -> Any:
                return [tf.identity(tensor) for tensor in (done, *last)]

            there = element.has_value()
            if self._replicas is not None:  # Replicas make a step together, or not at all.
                there = self._replicas.all(there)
            done, *last = tf.cond(there, on_element, on_end)
            return (done, there, *last)

        shapes = [tf.TensorShape([])] * 2
        shapes += [tf.TensorShape(None) if t.shape.rank else t.shape for t in first]
        done, _, *last = tf.while_loop(
            lambda done, there, *_: tf.logical_and(there, done < count),
            turn,
            [tf.constant(0, tf.int64), tf.constant(True), *first],
            shape_invariants=shapes,
            parallel_iterations=1,
        )
        return [*last, done, data.worker]

    def arguments(self, stacked: Sequence[Any], count: int) -> Sequence[Any]:
        """Returns the arguments for the function that `function(count)` returns.

        Use it once for each call, since it takes the steps' input from queues and readers.

        Args:
          stacked: for each fed placeholder, an array with a row for each step.
          count: the number of steps.
        """
        # Convert to the types of the placeholders, as TensorFlow's session does with feeds.
        arrays = [
            np.asarray(array, tensor.dtype.as_numpy_dtype)
            for array, tensor in zip(stacked, self._passed)
        ]
        last = []
        for accumulation in self._told:
            self._given[accumulation.is_last.name] += 1
            calls = self._given[accumulation.is_last.name]
            last.append(calls % accumulation.calls == 0)
        self.completes_update = any(last) or not last
        arrays += [np.array([flag]) for flag in last]
        arrays += self._session.taken(self._lifted.edges, self._lifted.targets, count)
        counts = [tf.constant(count, tf.int64)] if self.streams else []
        key = tf.constant(self._session.next_keys(count * len(self._lifted.keys)), tf.int32)
        return (self._data.source, key, *counts, *[tf.convert_to_tensor(a) for a in arrays])
