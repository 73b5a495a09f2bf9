"""The completion marker: a file in the log folder of a complete run.

A task that starts late, or is started again when all others have exited, finds the marker and
exits. Without it, the task would wait for the others in vain.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from compat.tracking import redacted
from compat.tracking.files import write_atomically
from experiments.evaluation.best_checkpoint import step_of

FILE = "complete.json"
_BEYOND = 1 << 63  # Steps are less than this; a longer number could not be part of a file name.


def write(config: Any, checkpoint: str) -> None:
    """Writes the marker, with the step of the last checkpoint and the settings."""
    marker = {"step": step_of(checkpoint), "settings": _settings(config.params())}
    write_atomically(os.path.join(config.logdir, FILE), json.dumps(marker) + "\n")


def clear(logdir: str) -> None:
    """Removes the marker, because the run resumes."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(logdir, FILE))


def step(config: Any) -> int | None:
    """Returns the step at which a run with these settings was completed, None if it was not."""
    marker = read(config.logdir)
    if marker is None or _settings(marker["settings"]) != _settings(config.params()):
        return None
    found = int(marker["step"])
    # If the checkpoint was deleted, the run is not complete: it starts anew.
    return found if (Path(config.logdir) / f"model.ckpt-{found}.index").exists() else None


def read(logdir: str) -> dict[str, Any] | None:
    """Returns the marker of a log folder, None if there is none or it is not valid."""
    try:
        marker = json.loads((Path(logdir) / FILE).read_text("utf-8"))
        found, settings = int(marker["step"]), dict(marker["settings"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # A broken marker is overwritten at the end of the run.
    return {"step": found, "settings": settings} if 0 <= found < _BEYOND else None


def message(logdir: str, step: int) -> str:
    """Returns the line for a user who starts a complete run again."""
    return (
        f"the run in {logdir} is complete, at step {step}; give more --max_steps or --epochs, or "
        "after early stopping --early_stopping_patience=0, to resume it, or another --logdir to "
        "start anew"
    )


def _settings(params: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings by which a run is identified."""
    settings = redacted(params)  # Markers of earlier releases still have secrets.
    settings.pop("logdir", None)  # Another machine may have the folder elsewhere.
    return settings
