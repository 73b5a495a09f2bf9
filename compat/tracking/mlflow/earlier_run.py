"""Sets a log folder's earlier run aside where a program starts anew, which gets its own run."""

from __future__ import annotations

import contextlib
import os

from compat.tracking.files import lock
from compat.tracking.mlflow import run_id, spool

FOLDER = "earlier-runs"


def is_resumed(logdir: str, step: int | None) -> bool:
    """Whether a program whose first point is of `step`, None if it has none, goes on with a run.

    One that starts anew begins with the step that the earlier one began with, or before it.
    """
    first = spool.first_step(logdir)
    return step is not None and first is not None and step > first


def set_aside(logdir: str) -> None:
    """Moves what belongs to the earlier run, if there is one, to a folder of its own.

    What was not delivered can be sent from there.

    Raises:
      UserError: it is being delivered.
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
        # The spool first: without it, the rest means nothing.
        for name in (spool.SPOOL, spool.OFFSET, run_id.FILE):
            with contextlib.suppress(FileNotFoundError):
                os.replace(os.path.join(logdir, name), os.path.join(folder, name))
