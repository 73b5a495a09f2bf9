"""Verifies that peers belong to the same run.

Each server has a note on it that says which training it is of: its cluster, and a token, if it was
given one. Tasks look at the notes of those they need before they train, or while they serve.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Callable, Iterator

from compat._tensorflow import tf1
from compat.cluster import ports
from compat.cluster.roles import chief_task
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import PeerError
from compat.liveness import key_value, rendezvous

_NOTE = "compat_training"
_GREETING = b"compat training "


def training(cluster: ClusterSpec, run_token: str) -> str:
    """Returns what all tasks of a training have in common, and no task of another has.

    Args:
      cluster: all tasks have to be given the same.
      run_token: tells two trainings of one cluster, one after the other, from each other; may be
        empty.
    """
    text = json.dumps([cluster.as_dict(), run_token], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def declare(target: str, task: Task, mine: str) -> None:
    """Says on the server of this very task, at `target`, which training it is of."""
    key_value.write(target, task, _NOTE, mine)


@contextlib.contextmanager
def declared(address: str, mine: str) -> Iterator[None]:
    """Says at the address of this very task which training it is of, until its server starts."""
    with ports.answered(address, _greeting(mine)):
        yield


def reason_not_met(address: str, task: Task, mine: str) -> str | None:
    """As `reason_not_member`, for a training whose servers start when all tasks have met."""
    reason = rendezvous.reason_unreachable(address)
    if reason is not None:
        return reason
    greeting = _greeting(mine)
    said = rendezvous.answer(address, len(greeting)) or b""
    if said == greeting:
        return None
    if said.startswith(_GREETING):
        return "other cluster"
    # It has met all others already. Its server has no note as long as it joins them.
    return reason_not_member(address, task, mine, declares=False)


def reason_not_member(address: str, task: Task, mine: str, declares: bool = True) -> str | None:
    """Returns why no member of this training, as `task`, is at an address; None if one is.

    Args:
      address: "host:port".
      task: what is expected to be there.
      mine: the training of this task.
      declares: whether each server of this training has a note from the beginning.
    """
    reason = rendezvous.reason_not_serving(address)
    if reason is not None:
        return reason
    try:
        found = key_value.read(f"grpc://{address}", task, _NOTE)
    except (PeerError, tf1.errors.UnavailableError):
        return "no answer"
    except tf1.errors.UnimplementedError:
        return "not TensorFlow"
    except tf1.errors.OpError:  # It is no such task.
        return "other cluster"
    return None if found == mine or not (found or declares) else "other cluster"


class Recognition:
    """Looks whether a training's chief is at an address, for those who wait for it or serve it.

    Its server is asked whose it is until it was recognised, and again after each time that it was
    away. In between its port has to accept connections, no more: a chief that is stopped, or on a
    busy machine, answers nothing, and yet is there.

    Args:
      cluster: whose chief it is.
      runtime: of the training, "legacy" or "modern".
      mine: the training of this task.
    """

    def __init__(self, cluster: ClusterSpec, runtime: str, mine: str) -> None:
        self._task, self._mine = chief_task(cluster), mine
        # Without parameter servers, and as a mere coordinator, it starts its server when all have
        # met, and that gets its note a moment later.
        starts_late = self._task.job == "chief" and runtime == "modern" or "ps" not in cluster.jobs
        self._stranger: Callable[[str, Task, str], str | None] = (
            reason_not_met if starts_late else reason_not_member
        )
        self._recognised = False

    def __call__(self, address: str) -> str | None:
        """Returns why the chief is not at `address`, in a word or two; None if it is."""
        if self._recognised:
            reason = rendezvous.reason_unreachable(address)
        else:
            reason = self._stranger(address, self._task, self._mine)
        self._recognised = reason is None
        return reason


def _greeting(mine: str) -> bytes:
    return _GREETING + mine.encode() + b"\n"
