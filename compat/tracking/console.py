"""What a training says on the terminal, line by line as in the example of 2016."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from compat.tracking.redaction import redacted_text

if TYPE_CHECKING:
    from tqdm import tqdm

LOG = "console.log"


def step_line(step: int, epoch: int, batch: int, batches: int, cost: float, avg_ms: float) -> str:
    """Returns the line of one global step.

    >>> step_line(18700, 18, 550, 550, 2.8933, 7.9)
    'Step: 18700,  Epoch: 18,  Batch: 550 of 550,  Cost: 2.8933,  AvgTime: 7.90ms'
    """
    return (
        f"Step: {step},  Epoch: {epoch:2d},  Batch: {batch:3d} of {batches:3d},"
        f"  Cost: {cost:.4f},  AvgTime: {avg_ms:3.2f}ms"
    )


def closing_lines(accuracy: float, seconds: float, cost: float | None) -> list[str]:
    """Returns the lines at the end of a training; `cost` is None if it was complete before.

    >>> closing_lines(0.41, 221.72, 2.5358)
    ['Test-Accuracy: 0.41', 'Total Time: 221.72s', 'Final Cost: 2.5358', 'done']
    """
    return [
        f"Test-Accuracy: {accuracy:2.2f}",
        f"Total Time: {seconds:3.2f}s",
        *([] if cost is None else [f"Final Cost: {cost:.4f}"]),
        "done",
    ]


class Console:
    """Prints lines, keeps them in the log folder, and shows a progress bar on a terminal."""

    def __init__(
        self,
        logdir: str | None = None,
        total_steps: int | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """Starts with no progress made.

        Args:
          logdir: The folder of `console.log`, which is appended to; None, as for all but the
            chief, keeps nothing.
          total_steps: The global step at which the training ends; None shows no bar.
          stream: Where to print; standard output by default.
        """
        self._stream = sys.stdout if stream is None else stream
        self._path = None if logdir is None else os.path.join(logdir, LOG)
        self._bar: tqdm[None] | None = None
        if total_steps is not None and self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total_steps, file=self._stream, unit="step", leave=False)

    def say(self, text: str) -> None:
        """Prints `text`, above the bar if there is one, and appends it to `console.log`.

        Secrets are hidden in both.
        """
        text = redacted_text(text)
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
            self._stream.flush()
        else:
            print(text, file=self._stream, flush=True)
        if self._path is not None:
            try:
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
                with open(self._path, "a", encoding="utf-8") as file:
                    file.write(text + "\n")
            except OSError as error:
                path, self._path = self._path, None
                self.say(f"{path!r} cannot be written to ({error.strerror}); the training goes on")

    def progress(self, step: int) -> None:
        """Moves the bar to global step `step`."""
        if self._bar is not None:
            self._bar.update(step - self._bar.n)

    def close(self) -> None:
        """Removes the bar; `say` can still be called."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
