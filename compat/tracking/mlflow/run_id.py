"""Stores the MLflow run id in the log folder, for restarts."""

from __future__ import annotations

import os
import re

from compat.tracking.files import write_atomically

FILE = "mlflow_run_id"
# As MLflow has it; of any other it says that it is wrong, not that there is no such run.
_ID = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,255}")


def write(logdir: str, run_id: str) -> None:
    """Notes the id; all at once, or not at all."""
    write_atomically(os.path.join(logdir, FILE), run_id)


def read(logdir: str) -> str | None:
    """Returns the id; None if there is none yet, or what is there can be none."""
    try:
        with open(os.path.join(logdir, FILE), encoding="ascii") as file:
            found = file.read(258).strip()  # The longest id, and a line end.
    except (OSError, ValueError):  # The latter of what is no text.
        return None
    return found if _ID.fullmatch(found) else None
