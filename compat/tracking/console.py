"""Prints the lines of a run, as the example of 2016 prints them, and a progress bar."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import Any, Iterable, Mapping, TextIO

from compat.errors import reason_of
from compat.processes.output import discard, terminal_columns
from compat.tracking.files import appending
from compat.tracking.notebook import Bar, is_notebook
from compat.tracking.redaction import redacted_text

LOG = "console.log"


def step_line(
    step: int,
    epoch: int,
    batch: int,
    batches: int | None,
    loss: float,
    avg_ms: float,
    loss_name: str = "loss",
) -> str:
    """Returns the line of one global step; `batches` is None for a stream of unknown length.

    >>> step_line(18700, 18, 550, 550, 2.8933, 7.9, "cost")
    'Step: 18700,  Epoch: 18,  Batch: 550 of 550,  Cost: 2.8933,  AvgTime: 7.90ms'
    """
    place = f"Epoch: {epoch:2d},  Batch: {batch:3d} of {batches:3d},  " if batches else ""
    return f"Step: {step},  {place}{loss_name.title()}: {loss:.4f},  AvgTime: {avg_ms:3.2f}ms"


def closing_lines(
    tests: Mapping[str, Mapping[str, float]],
    seconds: float,
    losses: Mapping[str, float],
    loss_name: str = "loss",
) -> list[str]:
    """Returns the lines at the end of a run.

    Args:
      tests: The values of the test split by name, for each set of tested weights, such as "last,
        step 240", or "" if there is only one set. The loss is only shown if it is the only value.
      seconds: The duration of the run.
      losses: The last loss by its data, such as "validation, step 240"; empty if the run was
        complete before.
      loss_name: The name of the loss.

    >>> closing_lines({"": {"accuracy": 0.41}}, 221.72, {"one batch": 2.5358}, "cost")
    ['Test-Accuracy: 0.41', 'Total Time: 221.72s', 'Final Cost: 2.5358 (one batch)', 'done']
    """
    lines = []
    for name in next(iter(tests.values()), {}):
        values_by_weights = {of: values[name] for of, values in tests.items()}
        if name != "loss" or not any(len(values) > 1 for values in tests.values()):
            texts = [
                f"{v:{'.2f' if abs(v) >= 0.01 else '.4g'}}" for v in values_by_weights.values()
            ]
            shown = _each(values_by_weights, texts)
            lines.append(f"Test-{name[:1].upper()}{name[1:]}: {shown}")
    lines.append(f"Total Time: {seconds:3.2f}s")
    if losses:
        texts = [f"{loss:.4f}" for loss in losses.values()]
        lines.append(f"Final {loss_name.title()}: {_each(losses, texts)}")
    return [*lines, "done"]


def _each(names: Iterable[str], values: Iterable[str]) -> str:
    """Returns values as text, each followed by its name in parentheses."""
    return ", ".join(f"{v} ({name})" if name else v for name, v in zip(names, values))


class Console:
    """Prints lines, appends them to a file of the log folder, and shows progress on a terminal.

    Output that cannot be written, as to `head` after it has exited, does not end the run.

    Args:
      logdir: The folder of `console.log`; None, as in tasks other than the chief, for none.
      total_steps: The global step at which the run ends; None shows no progress bar.
      stream: Where to print; standard output by default.
    """

    def __init__(
        self,
        logdir: str | None = None,
        total_steps: int | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._path = None if logdir is None else os.path.join(logdir, LOG)
        self._columns = terminal_columns(self._stream) if total_steps is not None else None
        self._total_steps = total_steps
        self._shows_bar = total_steps is not None and (self._columns is not None or is_notebook())
        self._bar: Any = None
        self._is_open = True

    def say(self, text: str) -> None:
        """Prints `text` without secrets, above the bar, and appends it to `console.log`."""
        text = redacted_text(text)
        if self._is_open:
            try:
                if self._bar is not None:
                    self._bar.write(text, file=self._stream)
                else:
                    print(text, file=self._stream)
                self._stream.flush()
            except OSError:
                self._abandon_stream()
        if self._path is not None:
            try:
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
                with appending(self._path) as file:
                    file.write(f"{text}\n".encode())
            except OSError as error:
                path, self._path = self._path, None
                self.say(f"{path!r} cannot be written to ({reason_of(error)}); the run continues")

    def progress(self, step: int) -> None:
        """Moves the bar to global step `step`.

        Speed and remaining time are counted from the first step of this process. The speed is a
        mean that includes the pauses for evaluations and checkpoints.
        """
        if not self._shows_bar or not self._is_open:
            return
        try:
            if self._bar is None:
                self._bar = self._new_bar(step)
            else:
                self._bar.update(step - self._bar.n)
        except OSError:
            self._abandon_stream()

    def _new_bar(self, step: int) -> Any:
        """Returns a bar that begins at a step."""
        if self._columns is None:
            return Bar(self._total_steps or 0, step)
        from tqdm import tqdm

        return tqdm(
            total=self._total_steps,
            initial=step,
            file=self._stream,
            unit="step",
            leave=False,
            smoothing=0,  # By default tqdm shows the speed of the last second, between two pauses.
            # Some terminals report a size of 0 by 0, for which tqdm would show nothing.
            ncols=self._columns or shutil.get_terminal_size().columns or 80,
            nrows=shutil.get_terminal_size().lines or 24,
        )

    def close(self) -> None:
        """Removes the bar; `say` can still be called."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self._shows_bar = False

    def _abandon_stream(self) -> None:
        """Discards all later output, including that of other code and buffered output."""
        self._is_open = False
        if self._bar is not None:
            self._bar.disable = True  # Otherwise the destructor of the bar would write.
            self._bar = None
        # The stream may have no descriptor, as in a notebook.
        with contextlib.suppress(OSError, ValueError):
            discard(self._stream)
