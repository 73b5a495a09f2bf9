"""Stops a run early, by a request in its log folder, which the chief passes on to the workers.

A request is a file, so that a chief that is down at that moment finds it when it is restarted.
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
    """A request to stop a run early."""

    step: int  # The step of the evaluation, or of the callback, that led to the request.
    patience: int  # The `--early_stopping_patience` that was exhausted; 0 for a callback.
    reason: str


def request(logdir: str, found: StopRequest) -> None:
    """Writes a request, in place of an earlier one."""
    write_atomically(os.path.join(logdir, FILE), json.dumps(asdict(found)) + "\n")


def read(logdir: str) -> StopRequest | None:
    """Returns the request, None if there is none or its file is not valid."""
    try:
        with open(os.path.join(logdir, FILE), encoding="utf-8") as file:
            fields = json.load(file)
        # Anyone may have written the file, so the reason is cleaned before it is printed.
        reason = one_line(str(fields["reason"]))
        return StopRequest(int(fields["step"]), int(fields["patience"]), reason)
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


def standing(logdir: str, step: int, patience: int | None) -> StopRequest | None:
    """Returns the request that still holds for a run that resumes at `step`; removes any other.

    A request does not hold if its step is later than `step`: the run was killed, and has lost that
    step. Nor does it hold if the user now gives more patience than the request has, or 0, which
    turns early stopping off. `patience` is None if the user gave none.
    """
    found = read(logdir)
    patient = patience is not None and (patience == 0 or found is None or patience > found.patience)
    if found is None or (found.step <= step and not patient):
        return found
    with contextlib.suppress(OSError):
        os.remove(os.path.join(logdir, FILE))
    return None
