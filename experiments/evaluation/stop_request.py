"""A request to end a training early: a file in its log folder, which the chief looks for.

It outlives whoever made it, and a chief that is down at that moment finds it when it is back.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass

from compat.errors import one_line
from compat.tracking.mlflow.spool import write_whole

FILE = "stop_request.json"


@dataclass(frozen=True)
class StopRequest:
    """Why a training is to end.

    Attributes:
      step: the global step of the evaluation that called for it.
      patience: the `--early_stopping_patience` by which it did.
      reason: in words.
    """

    step: int
    patience: int
    reason: str


def write(logdir: str, request: StopRequest) -> None:
    """Makes the request; one that was there is replaced.

    Raises:
      OSError: it cannot be written.
    """
    write_whole(os.path.join(logdir, FILE), json.dumps(asdict(request)) + "\n")


def read(logdir: str) -> StopRequest | None:
    """Returns the request, if there is one."""
    try:
        with open(os.path.join(logdir, FILE), encoding="utf-8") as file:
            fields = json.load(file)
        reason = one_line(str(fields["reason"]))  # It goes to a terminal, from any hand's file.
        return StopRequest(int(fields["step"]), int(fields["patience"]), reason)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None  # Of another hand; whoever wants a stop asks again.


def standing(logdir: str, step: int, patience: int) -> StopRequest | None:
    """Returns the request that holds for a training which begins at `step`; removes any other.

    Who goes on with a training that was ended gives it more patience than it had. A request of a
    later step is of a training that was cut off.

    Args:
      logdir: the log folder.
      step: the global step of the last checkpoint; 0 for a new training.
      patience: the chief's own `--early_stopping_patience`; 0 if it has none.
    """
    request = read(logdir)
    if request is None or (request.step <= step and patience <= request.patience):
        return request
    with contextlib.suppress(OSError):
        os.remove(os.path.join(logdir, FILE))
    return None
