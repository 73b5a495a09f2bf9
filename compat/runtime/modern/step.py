"""A step of the modern runtime: the lifted function, and the loop that a worker runs it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf, traced
from compat.errors import UserError
from compat.runtime.device_placement import Placed
from compat.runtime.modern.lift import lift
from compat.runtime.session import Step

if TYPE_CHECKING:
    from compat.runtime.modern.runtime import ModernRuntime

MOST_UNROLLED = 50
_STEPS_A_TURN = 10


class ModernStep(Step):
    """A lifted step, and the loop that a worker runs it in."""

    def __init__(
        self,
        function: Callable[..., Mapping[str, Any]],
        signature: Sequence[Any],
        resident: Sequence[np.ndarray],
        runtime: ModernRuntime,
        here: bool,
    ) -> None:
        self.here = here
        self._dtypes = [spec.dtype.as_numpy_dtype for spec in signature]
        data = [tf.constant(array) for array in resident]
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in data] + list(signature)
        self._lifted = lift(function, specs, runtime.placement)
        self.names = self._lifted.names
        self._data: Callable[[Any], Any] = lambda source: source
        if runtime.coordinator is not None and data and not here:
            # Lies on every worker, and is laid there again by TensorFlow when one is replaced.
            self._source = iter(
                runtime.coordinator.create_per_worker_dataset(
                    lambda: tf.data.Dataset.from_tensors(tuple(data)).repeat()
                )
            )
            self._data = lambda source: source.get_next()
        else:
            self._source = tuple(data)
        self._loops: dict[int, Any] = {}

    def loop(self, count: int) -> Any:
        """Returns the function that runs `count` steps, and returns the values of the last."""
        if count not in self._loops:
            self._loops[count] = traced(
                lambda source, *stacked: self._loop(count, self._data(source), stacked)
            )
        return self._loops[count]

    def _loop(self, count: int, data: Sequence[Any], stacked: Sequence[Any]) -> Any:
        if count <= MOST_UNROLLED:
            return self._unrolled(0, count, data, stacked)
        # For more the graph would take too long to make. Each turn of a `while_loop` makes the
        # worker and all parameter servers agree to go on, so a turn has several steps.
        turns, rest = divmod(count, _STEPS_A_TURN)
        _, last = tf.while_loop(
            lambda turn, _: turn < turns,
            lambda turn, _: (
                turn + 1,
                self._unrolled(turn * _STEPS_A_TURN, _STEPS_A_TURN, data, stacked),
            ),
            [tf.constant(0), tf.zeros([len(self.names)], tf.float64)],
            parallel_iterations=1,
        )
        return self._unrolled(turns * _STEPS_A_TURN, rest, data, stacked) if rest else last

    def _unrolled(self, first: Any, count: int, data: Sequence[Any], stacked: Sequence[Any]) -> Any:
        """Runs the steps from `first` on; returns the values of the last."""
        for i in range(count):
            last = self._lifted([*data, *[array[first + i] for array in stacked]], copy=i)
        return last

    def graph_def(self) -> bytes:
        return bytes(self._lifted.graph_def.SerializeToString())

    def operations(self) -> list[Placed]:
        return self._lifted.operations()

    def arguments(self, stacked: Sequence[Any]) -> Sequence[Any]:
        """Returns the arguments of a call of `loop`.

        Raises:
          UserError: the number of arrays is wrong.
        """
        if len(stacked) != len(self._dtypes):
            raise UserError(
                f"a step was run on {len(stacked)} arrays; its signature has "
                f"{len(self._dtypes)}, pass as many"
            )
        # To the signature's types, as feeds of the legacy runtime are.
        arrays = [np.asarray(array, dtype) for array, dtype in zip(stacked, self._dtypes)]
        return (self._source, *[tf.convert_to_tensor(array) for array in arrays])
