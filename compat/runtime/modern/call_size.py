"""Chooses how many steps a call makes, by the time to build a larger call and the time it saves.

Each call has an overhead, so larger calls train faster. But a call of many steps is a function with
as many copies of the step, which takes seconds or minutes to build and to optimize. Both are
measured: a call of one size is built and timed before the next size is considered.
"""

from __future__ import annotations

import collections
from typing import Callable

MOST_UNROLLED = 50
STEPS_A_TURN = 10  # A call of more steps is a loop over this many copies.
_SIZES = (1, 5, 25, MOST_UNROLLED)
_CALLS = 20  # The number of calls by which a size is measured.
# If only one size was measured, the overhead of a call is unknown. It is taken for this share of
# the call's time.
_SHARE_OF_UNKNOWN = 0.25
# Measurements on a busy machine may be wrong. So a larger call may be built in any case, if that
# takes at most this share of the remaining time.
_SHARE_OF_RUN = 0.01


def copies(size: int) -> int:
    """Returns how many copies of a step are in the function for a call of `size` steps.

    A large call loops over the copies, so the function has fewer copies than steps.
    """
    return size if size <= MOST_UNROLLED else STEPS_A_TURN + (size - 1) % STEPS_A_TURN + 1


class CallSizes:
    """Chooses the sizes of the calls of a step.

    Args:
      warm_up: The number of calls of a size that are not timed: with several workers, the first
        calls fill the queues, and each worker builds the function at its first call.
    """

    def __init__(self, warm_up: int = 0) -> None:
        self._warm_up = warm_up
        self._built: dict[int, float] = {}  # Seconds to build a call, by size.
        # The number of calls after the first one.
        self._calls: collections.Counter[int] = collections.Counter()
        # The total time of the timed calls.
        self._secs: dict[int, float] = collections.defaultdict(float)
        self._made = 0

    def choose(self, most: int, left: int | None, announce: Callable[[int, float], object]) -> int:
        """Returns how many of `most` steps the next call makes.

        Args:
          most: The number of steps that the caller asks for.
          left: The remaining steps of the run. If None, assumes as many as were made so far.
          announce: Receives the size of a call that will be built now, and the seconds that
            building may take.
        """
        size = max((size for size in self._built if size <= most), default=1)
        sizes = _SIZES if most <= MOST_UNROLLED else (*_SIZES, most)
        larger = next((each for each in sizes if size < each <= most), None)
        if larger is None or not self._pays(size, larger, self._made if left is None else left):
            return size
        announce(larger, self._cost(size, larger))
        return larger

    def record(self, size: int, secs: float) -> None:
        """Records the time of a call; for the first call of a size, the time includes building."""
        self._made += size
        if size not in self._built:
            self._built[size] = secs
            return
        self._calls[size] += 1
        if self._calls[size] > self._warm_up:
            self._secs[size] += secs

    def is_building(self, size: int) -> bool:
        """Returns whether a worker may still be building the calls of this size."""
        return self._calls[size] < self._warm_up or size not in self._built

    def _cost(self, size: int, larger: int) -> float:
        """Returns the seconds that building a larger call may take."""
        return self._built[size] / copies(size) * copies(larger)

    def _pays(self, size: int, larger: int, remaining: int) -> bool:
        secs = self._secs_a_step(size)
        if secs is None:
            return False
        cost, fewer_calls = self._cost(size, larger), (1 / size - 1 / larger) * remaining
        smaller = max((s for s in self._built if s < size), default=0)
        before = self._secs_a_step(smaller)
        if before is None:
            return cost <= _SHARE_OF_UNKNOWN * secs * size * fewer_calls
        secs_a_call = (before - secs) / (1 / smaller - 1 / size)
        return cost <= max(secs_a_call * fewer_calls, _SHARE_OF_RUN * secs * remaining)

    def _secs_a_step(self, size: int) -> float | None:
        """Returns how long a step takes in calls of a size, None if that is not known yet."""
        timed = self._calls[size] - self._warm_up
        return self._secs[size] / timed / size if timed >= _CALLS else None
