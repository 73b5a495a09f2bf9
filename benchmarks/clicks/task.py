"""`experiments.recommender` as it is, with a clock: see `benchmarks.clicks` and `tables`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from benchmarks.clicks.clock import Clock
from benchmarks.trainings import resident
from experiments import run, setting
from experiments.recommender import Recommender

LAST = 10  # So many updates before the end the clock is read at each, for others may make the last.


class Timed(Recommender):
    """Prints the seconds of an update, the AUC, and the memory of each task in training."""

    @dataclass(frozen=True)
    class Settings(Recommender.Settings):
        """And when the clock starts, and whether the run ends by itself."""

        warm_up: int = setting(20, "Updates before the clock starts.", group="recording")
        leave: bool = setting(False, "Exit at the end without a checkpoint.", group="recording")

    _clock: Any = None
    _memory: Any = None

    def on_step(self, run: Any, values: Any) -> None:
        is_end = run.step >= self.settings.max_steps - LAST
        if (self._clock is None and run.step >= self.settings.warm_up) or is_end:
            self._clock = self._clock or Clock()
            self._clock.read(run.step)
        if is_end and self.settings.leave:
            print(json.dumps({"memory": resident(os.getppid())}), flush=True)
            os._exit(0)
        if is_end:
            self._memory = resident(os.getppid())

    def on_end(self, run: Any, result: Any) -> None:
        self._clock.print(result.metrics["test/auc"], memory=self._memory)


if __name__ == "__main__":
    run(Timed)
