"""When a run logs, evaluates, saves and ends: arithmetic on the global step."""

from __future__ import annotations

import sys
from dataclasses import dataclass

# The fewest updates in a call of several. Smaller calls would end exactly where a line is due, but
# there would be nearly a call for each update.
_LEAST_LOOP = 5
_LOOPS_LEFT = 20  # Calls that each worker has left, at least, if a call makes several updates.


@dataclass(frozen=True)
class Schedule:
    """Says when a run logs, saves and ends, by the global step alone.

    So a resumed run, and a chief that sees only every hundredth update of its cluster, need no
    counts of their own.
    """

    batches_per_epoch: int | None  # Of each worker; None for a stream of unknown length.
    num_workers: int  # Workers that each pass over the whole training set.
    total_steps: int | None  # Updates of all workers after which it ends; None: with its data.
    steps_per_loop: int  # The most updates in a call of TensorFlow, between the chief's checks.
    log_every: int  # Batches of each worker between two lines.
    intervals: tuple[int, ...] = ()  # Updates between two summaries, evaluations or checkpoints.
    stops: tuple[int, ...] = ()  # Other steps at which a call has to end.
    known_steps: int | None = None  # Updates of a run that ends with its data, if known.
    num_loops: int = 1  # Asynchronous workers, which make calls at the same time.

    @property
    def steps_per_epoch(self) -> int | None:
        """Updates in which every worker passes over the training set once; None if unknown."""
        return self.batches_per_epoch and self.batches_per_epoch * self.num_workers

    @property
    def steps_per_point(self) -> int:
        """Updates between two points of a curve: 100, or a tenth of a short run."""
        return 100 if self.last_step is None else max(1, min(100, self.last_step // 10))

    @property
    def last_step(self) -> int | None:
        """The step of the last update, None if unknown. A lost worker may end the run earlier."""
        return self.known_steps if self.total_steps is None else self.total_steps

    def is_over(self, step: int) -> bool:
        """Whether all updates have been made."""
        return self.total_steps is not None and step >= self.total_steps

    def loop_size(self, step: int) -> int:
        """Returns how many updates to make from `step` on: up to the next thing due, or the end."""
        batches = step // self.num_workers
        next_epoch = (batches // self._epoch + 1) * self._epoch
        next_line = min(self._last_line(batches) + self.log_every, next_epoch)
        stops = [next_line * self.num_workers]
        stops += [(step // every + 1) * every for every in self.intervals]
        stops += [stop for stop in self.stops if stop > step]
        if self.last_step is not None and self.last_step > step:
            stops.append(self.last_step)
        if self.num_loops == 1:
            return min(self.steps_per_loop, min(stops) - step)
        share = max(_LEAST_LOOP, (min(stops) - step) // self.num_loops)
        if self.total_steps is not None:
            # So that other workers do not end the run while a slow one is still in a call.
            share = min(share, (self.total_steps - step) // (_LOOPS_LEFT * self.num_loops))
        if share < _LEAST_LOOP:
            return 1
        return min(self.steps_per_loop, share - share % _LEAST_LOOP)

    def line(self, before: int, after: int) -> tuple[int, int] | None:
        """Returns epoch and batch for the console if a line is due between two steps, else None.

        Both count from 1, for one worker. A line is due after every `log_every` batches, at the end
        of an epoch, and at the end of the run.
        """
        if self.last_step is not None and before < self.last_step <= after:
            batches = max(1, self.last_step // self.num_workers)
        else:
            batches = self._last_line(after // self.num_workers)
            if batches <= before // self.num_workers:
                return None
        epoch, batch = divmod(batches - 1, self._epoch)
        return epoch + 1, batch + 1

    @property
    def _epoch(self) -> int:
        """Batches of each worker in an epoch; if that is unknown, more than a run ever has."""
        return self.batches_per_epoch or sys.maxsize

    def _last_line(self, batches: int) -> int:
        """Returns the last number of batches up to `batches` at which a line is due; 0: none."""
        return batches - batches % self._epoch % self.log_every


def due(every: int, before: int, after: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return after // every > before // every
