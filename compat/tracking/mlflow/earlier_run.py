"""Moves the records of a log folder's earlier run aside if a program begins a new run there."""

from __future__ import annotations

import contextlib
import os

from compat.tracking.files import lock
from compat.tracking.mlflow import run_id, spool

FOLDER = "earlier-runs"


def is_resumed(logdir: str, step: int | None) -> bool:
    """Returns whether a program resumes a run; `step` is that of its first point, or None.

    A program that starts at or before the first step of the earlier run begins a new run.
    """
    first = spool.first_step(logdir)
    return step is not None and first is not None and step > first


def set_aside(logdir: str) -> None:
    """Moves the records of an earlier run, if there is one, to a folder of their own.

    Records that were not delivered can still be sent from there.

    Raises:
      UserError: The records are being delivered.
    """
    if not os.path.exists(os.path.join(logdir, spool.SPOOL)):
        return
    busy = f"the earlier run in {logdir!r} is being sent to MLflow; wait until that has ended"
    with contextlib.closing(lock(os.path.join(logdir, spool.SENDING), busy)):
        number = 1
        while os.path.exists(os.path.join(logdir, FOLDER, str(number))):
            number += 1
        folder = os.path.join(logdir, FOLDER, str(number))
        os.makedirs(folder)
        # Move the spool first, since the other files belong to it.
        for name in (spool.SPOOL, spool.OFFSET, run_id.FILE):
            with contextlib.suppress(FileNotFoundError):
                os.replace(os.path.join(logdir, name), os.path.join(folder, name))
