"""The mark that a complete training leaves in its log folder.

A task that comes late, or is started again when all the others have gone, would wait for them in
vain. It finds the mark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compat.tracking.mlflow.spool import write_whole
from experiments.settings.config import Config

FILE = "complete.json"
_BEYOND = 1 << 63  # No step is there, nor has the name of a file room for any number.


def write(config: Config, step: int) -> None:
    """Notes that the training is complete at a global step; all at once, or not at all."""
    mark = {"step": step, "settings": _settings(config)}
    write_whole(str(Path(config.logdir) / FILE), json.dumps(mark) + "\n")


def clear(logdir: str) -> None:
    """Takes the mark away, for the training goes on."""
    path = Path(logdir) / FILE
    if path.exists():
        path.unlink()


def step(config: Config) -> int | None:
    """Returns the global step at which the very training was completed, or None if it was not.

    One with other settings, such as more updates, is another one; and one whose checkpoint was
    deleted is to begin anew.
    """
    mark = read(config.logdir)
    if mark is None or mark["settings"] != _settings(config):
        return None
    found = int(mark["step"])
    return found if (Path(config.logdir) / f"model.ckpt-{found}.index").exists() else None


def read(logdir: str) -> dict[str, Any] | None:
    """Returns the mark of whatever training is complete in a log folder, None if none is.

    Two ends that follow each other have different ones.
    """
    try:
        mark: dict[str, Any] = json.loads((Path(logdir) / FILE).read_text("utf-8"))
        found = {"step": int(mark["step"]), "settings": mark["settings"]}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # There is none, or it is broken and will be made again.
    return found if 0 <= found["step"] < _BEYOND else None


def message(logdir: str, step: int) -> str:
    """Returns what the user is told who starts a complete training again."""
    return (
        f"the training in {logdir} is complete, at step {step}; give more --max_steps, --epochs or "
        "--early_stopping_patience to go on, or another --logdir to begin anew"
    )


def _settings(config: Config) -> dict[str, Any]:
    settings: dict[str, Any] = config.params()
    del settings["logdir"]  # Another machine may have the folder elsewhere.
    return settings
