"""How a run is stopped early: by a request in its log folder, which its chief passes on to workers.

A request is a file: it outlives the process that made it, and a chief that is down at that moment
finds it when it is back. Only the chief has to see the log folder. Asynchronous workers of the
legacy runtime read a key-value entry on a parameter server instead; workers that make each update
together agree on the end, and those of a coordinator receive no more updates.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass

import compat
from compat import tf1
from compat.cluster.roles import chief_task
from compat.cluster.spec import Task
from compat.errors import one_line
from compat.liveness import key_value
from compat.tracking.files import write_atomically

FILE = "stop_request.json"
_ENTRY = "training_ends_early"
_POLL_SECS = 3.0  # A poll takes some 15 ms.


@dataclass(frozen=True)
class StopRequest:
    """Why a run is to stop early.

    Attributes:
      step: the step of the evaluation that led to it.
      patience: the `--early_stopping_patience` that was exhausted.
      reason: in words.
    """

    step: int
    patience: int
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

    A request no longer holds once the chief is given more patience, or none of it (0); None says
    that it was not given any, as where only an evaluator of another machine has it. A request of a
    later step is of a run that was cut off.
    """
    found = read(logdir)
    patient = patience is not None and (patience == 0 or found is None or patience > found.patience)
    if found is None or (found.step <= step and not patient):
        return found
    with contextlib.suppress(OSError):
        os.remove(os.path.join(logdir, FILE))
    return None


def message(logdir: str, step: int, found: StopRequest) -> str:
    """Returns the line for a user who starts a run again that was stopped early."""
    return (
        f"the run in {logdir} was stopped early, at step {step}; give --early_stopping_patience=0 "
        f"to resume it without early stopping, or one of more than {found.patience}, or another "
        "--logdir to start anew"
    )


def entry_place(server: compat.Server) -> tuple[str, Task]:
    """Returns the server that holds a run's entries: the first parameter server, else the chief."""
    task = chief_task(server.cluster)
    if "ps" in server.cluster.jobs:
        task = Task("ps", server.cluster.task_indices("ps")[0])
    return "grpc://" + server.cluster.address_of(task), task


def announce(server: compat.Server | None) -> None:
    """Announces the end to the workers that find out by `Announcement`, if there are any."""
    if server is not None and server.runtime == "legacy":
        # A lost server is reported by the next update.
        with contextlib.suppress(tf1.errors.OpError):
            key_value.write(*entry_place(server), _ENTRY, "1")


class Announcement:
    """Whether the chief has announced the end; a worker polls it between its updates."""

    def __init__(self, server: compat.Server) -> None:
        self._server = server
        self._polled = time.monotonic()
        self._step = -1

    def poll(self, step: int) -> bool:
        """Returns whether the run ends early, as far as is known; asks every three seconds.

        And at once if the global step does not move: then the gradients of replicas are no longer
        aggregated, and replicas whose chief has exited have few tokens left before they would wait
        without end.
        """
        now, before = time.monotonic(), self._step
        self._step = step
        if self._server.runtime != "legacy" or (now - self._polled < _POLL_SECS and step != before):
            return False
        self._polled = now
        with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
            return bool(key_value.read(*entry_place(self._server), _ENTRY))
        return False
