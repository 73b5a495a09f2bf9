"""How a run is stopped early: by a request in its log folder, which its chief passes on to workers.

A request is a file: a chief that is down at that moment finds it when it is back.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass

from compat.errors import one_line
from compat.tracking.files import write_atomically

FILE = "stop_request.json"


@dataclass(frozen=True)
class StopRequest:
    """Why a run is to stop early."""

    step: int  # Of the evaluation, or the callback, that led to it.
    patience: int  # The `--early_stopping_patience` that was exhausted; 0 of a callback.
    reason: str


def request(logdir: str, found: StopRequest) -> None:
    """Writes the request; one that was there is replaced."""
    write_atomically(os.path.join(logdir, FILE), json.dumps(asdict(found)) + "\n")


def read(logdir: str) -> StopRequest | None:
    """Returns the request, None if there is none or its file is not valid."""
    try:
        with open(os.path.join(logdir, FILE), encoding="utf-8") as file:
            fields = json.load(file)
        reason = one_line(str(fields["reason"]))  # It is printed, and anyone may have written it.
        return StopRequest(int(fields["step"]), int(fields["patience"]), reason)
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


def standing(logdir: str, step: int, patience: int | None) -> StopRequest | None:
    """Returns the request that holds for a run which resumes at `step`; removes any other.

    It no longer holds once the chief is given more patience, or none of it (0); None if it was not
    given. That of a later step is of a run that was cut off.
    """
    found = read(logdir)
    patient = patience is not None and (patience == 0 or found is None or patience > found.patience)
    if found is None or (found.step <= step and not patient):
        return found
    with contextlib.suppress(OSError):
        os.remove(os.path.join(logdir, FILE))
    return None
