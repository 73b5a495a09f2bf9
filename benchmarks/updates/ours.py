"""`experiments.mnist` as it is, with a clock."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.updates.task import Clock
from experiments import run
from experiments.mnist import MNIST


class Timed(MNIST):
    """Notes when $WARM_UP updates have been made, and the last."""

    clock = Clock()

    def on_step(self, run: Any, values: Any) -> None:
        if not self.clock.steps and run.step >= int(os.environ["WARM_UP"]):
            self.clock.note(run.step, values["loss"])
        self._last = run.step, values["loss"], self.clock.now()

    def on_end(self, run: Any, result: Any) -> None:
        self.clock.note(*self._last)
        self.clock.print()


if __name__ == "__main__":
    run(Timed)
