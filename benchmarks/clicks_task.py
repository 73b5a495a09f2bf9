"""`experiments.recommender` as it is, with a clock: see `benchmarks.clicks`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from experiments import run, setting
from experiments.recommender import Recommender


class Timed(Recommender):
    """Prints the seconds of an update, and the AUC."""

    @dataclass(frozen=True)
    class Settings(Recommender.Settings):
        """And when the clock starts."""

        warm_up: int = setting(20, "Updates before the clock starts.", group="recording")

    _began: Any = None

    def on_step(self, run: Any, values: Any) -> None:
        now = run.step, time.time(), time.process_time()
        if self._began is None and run.step >= self.settings.warm_up:
            self._began = now
        self._ended = now

    def on_end(self, run: Any, result: Any) -> None:
        steps, wall, cpu = (end - begin for begin, end in zip(self._began, self._ended))
        found = {"wall": wall / steps, "cpu": cpu / steps, "auc": result.metrics["test/auc"]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    run(Timed)
