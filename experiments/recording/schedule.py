"""When a run logs, evaluates, saves and ends: arithmetic on the global step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The course of a run, as a function of the global step alone.

    So a resumed run, and a chief that sees only every hundredth update of its cluster, know where
    they are without counting.

    Attributes:
      batches_per_epoch: batches of each worker in a pass over the training set; None of a stream
        whose length is not known.
      num_workers: workers, each of which passes over the set.
      total_steps: updates of all workers; None: the run ends with its data.
      steps_per_loop: the most updates between two checks of the chief.
      log_every: batches of each worker between two lines.
      intervals: numbers of updates at whose multiples the chief has something else to do.
    """

    batches_per_epoch: int | None
    num_workers: int
    total_steps: int | None
    steps_per_loop: int
    log_every: int
    intervals: tuple[int, ...] = ()

    @property
    def steps_per_epoch(self) -> int | None:
        """Updates until every worker has passed over the training set once."""
        return self.batches_per_epoch and self.batches_per_epoch * self.num_workers

    @property
    def steps_per_point(self) -> int:
        """Updates between two points of a curve: 100, or a tenth of a short run."""
        return 100 if self.total_steps is None else max(1, min(100, self.total_steps // 10))

    def is_over(self, step: int) -> bool:
        """Whether all updates have been made."""
        return self.total_steps is not None and step >= self.total_steps

    def loop_size(self, step: int) -> int:
        """Returns how many updates to schedule at `step`: up to what is due next, or the end."""
        stops = [self._next_line(step // self.num_workers) * self.num_workers]
        stops += [(step // every + 1) * every for every in self.intervals]
        if self.total_steps is not None:
            stops.append(self.total_steps)
        return min(self.steps_per_loop, min(stops) - step)

    def line(self, before: int, after: int) -> tuple[int, int] | None:
        """Returns epoch and batch for the console if a line is due between two steps, else None.

        As in the 2016 example, both are those of one worker and count from 1; a line is due after
        every `log_every` batches and at the end of an epoch; here also at the end of the run.
        """
        batches = after // self.num_workers
        if self.is_over(after) and not self.is_over(before):
            return self._position(max(1, (self.total_steps or 0) // self.num_workers))
        last = None
        line = self._next_line(before // self.num_workers)
        while line <= batches:
            last, line = line, self._next_line(line)
        return None if last is None else self._position(last)

    def _next_line(self, batches: int) -> int:
        """Returns the first number of batches above `batches` at which a line is due."""
        if self.batches_per_epoch is None:
            return (batches // self.log_every + 1) * self.log_every
        epoch, batch = divmod(batches, self.batches_per_epoch)
        following = (batch // self.log_every + 1) * self.log_every
        return epoch * self.batches_per_epoch + min(following, self.batches_per_epoch)

    def _position(self, batches: int) -> tuple[int, int]:
        if self.batches_per_epoch is None:
            return 1, batches
        epoch, batch = divmod(batches - 1, self.batches_per_epoch)
        return epoch + 1, batch + 1


def due(every: int, before: int, after: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return after // every > before // every
