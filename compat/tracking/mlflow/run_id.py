"""Stores the ids of the MLflow run and its experiment in the log folder, for restarts."""

from __future__ import annotations

import os
import re
import time

from compat.tracking.files import write_atomically

FILE = "mlflow_run_id"
# The format of MLflow's ids. For other text MLflow reports an invalid id, not a missing run.
_ID = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,255}")


def write(logdir: str, run_id: str, experiment_id: str) -> None:
    """Stores the ids of the run and of its experiment, a line each, atomically."""
    write_atomically(os.path.join(logdir, FILE), f"{run_id}\n{experiment_id}\n")


def read(logdir: str) -> str | None:
    """Returns the id of the run; None if the file is missing or has no valid id."""
    return next(iter(_ids(logdir)), None)


def wait(logdir: str, seconds: float = 60.0) -> str | None:
    """Waits until MLflow has given an id; returns it, or None after `seconds`."""
    deadline = time.monotonic() + seconds
    while read(logdir) is None and time.monotonic() <= deadline:
        time.sleep(0.1)
    return read(logdir)


def page(logdir: str) -> str:
    """Returns the path of the run's page on MLflow's server; "" if it is unknown.

    The path selects the view for training, because MLflow 3 would open its view for GenAI.
    """
    ids = _ids(logdir)
    view = "?workflowType=machine_learning"
    return f"/#/experiments/{ids[1]}/runs/{ids[0]}{view}" if len(ids) == 2 else ""


def _ids(logdir: str) -> list[str]:
    try:
        with open(os.path.join(logdir, FILE), encoding="ascii") as file:
            ids = file.read(516).split()  # Two ids of the greatest length, and two line ends.
    except (OSError, ValueError):  # ValueError for a file that is not text.
        return []
    return ids if all(map(_ID.fullmatch, ids)) else []
