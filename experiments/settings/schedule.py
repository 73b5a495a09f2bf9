"""When a training logs, measures, saves and ends: arithmetic on the global step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The course of a training, as a function of the global step alone.

    So a resumed training, and a chief that sees only every hundredth update of its cluster, know
    where they are without counting themselves.

    Attributes:
      batches_per_epoch: batches in a pass over the training set.
      num_workers: workers, each of which passes over the set.
      total_steps: updates in all.
      steps_per_loop: the most updates between two looks of the chief.
      log_every: batches of each worker between two lines.
    """

    batches_per_epoch: int
    num_workers: int
    total_steps: int
    steps_per_loop: int
    log_every: int

    @property
    def steps_per_epoch(self) -> int:
        """Updates until every worker has passed over the training set once."""
        return self.batches_per_epoch * self.num_workers

    @property
    def steps_per_point(self) -> int:
        """Updates between two points of a curve: 100, or a tenth of a short training."""
        return max(1, min(100, self.total_steps // 10))

    def loop_size(self, step: int) -> int:
        """Returns how many updates to hand out at `step`: not past the next line, nor the end."""
        line = (self._next_line(step // self.num_workers)) * self.num_workers
        return min(self.steps_per_loop, self.total_steps - step, line - step)

    def line(self, before: int, after: int) -> tuple[int, int] | None:
        """Returns epoch and batch for the console if a line is due between two steps, else None.

        As in the 2016 example, both are those of one worker and count from 1; a line is due after
        every `log_every` batches and at the end of an epoch; here also at the end of the training.
        """
        batches = after // self.num_workers
        if after >= self.total_steps and before < self.total_steps:
            return self._position(max(1, self.total_steps // self.num_workers))
        last = None
        line = self._next_line(before // self.num_workers)
        while line <= batches:
            last, line = line, self._next_line(line)
        return None if last is None else self._position(last)

    def _next_line(self, batches: int) -> int:
        """Returns the first number of batches above `batches` at which a line is due."""
        epoch, batch = divmod(batches, self.batches_per_epoch)
        following = (batch // self.log_every + 1) * self.log_every
        return epoch * self.batches_per_epoch + min(following, self.batches_per_epoch)

    def _position(self, batches: int) -> tuple[int, int]:
        epoch, batch = divmod(batches - 1, self.batches_per_epoch)
        return epoch + 1, batch + 1


def due(every: int, before: int, after: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return after // every > before // every
