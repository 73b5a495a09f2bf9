"""Verifies that peers belong to the same run, so that two runs on the same machines never mix.

Each server has a key-value entry with the fingerprint of its run: a digest of the cluster and of a
token. Tasks read the entries of the tasks that they need, before they train or while they serve.
"""

from __future__ import annotations

import hashlib
import json
from typing import ContextManager

from compat._tensorflow import tf1
from compat.cluster import ports
from compat.cluster.liveness import key_value, probe
from compat.cluster.liveness.monitor import Check
from compat.cluster.roles import chief_task
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import PeerError

_KEY = "compat_training"
_GREETING = b"compat training "


def fingerprint(cluster: ClusterSpec, run_token: str) -> str:
    """Returns a digest that all tasks of a run share, and that differs between runs."""
    text = json.dumps([cluster.as_dict(), run_token], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def declare(target: str, task: Task, run: str) -> None:
    """Writes the fingerprint of the run to this task's own server, at `target`."""
    key_value.write(target, task, _KEY, run)


def declared_until_started(address: str, run: str) -> ContextManager[None]:
    """Returns a context that answers at this task's `address` with `run`, its run's fingerprint.

    Peers can thus recognize the task before its server starts.
    """
    return ports.answered(address, _greeting(run))


def reason_not_met(address: str, task: Task, run: str) -> str | None:
    """Returns why `task` of this run is not at an address; None if it is.

    It replaces `reason_not_member` in a run whose servers start only when all tasks have met. It
    also accepts a task that answers by `declared_until_started`, or whose server has no entry yet.
    """
    reason = probe.reason_unreachable(address)
    if reason is not None:
        return reason
    greeting = _greeting(run)
    reply = probe.read_reply(address, len(greeting)) or b""
    if reply == greeting:
        return None
    if reply.startswith(_GREETING):
        return "other cluster"
    # The peer has met all others already. Its server has no entry until it has joined them.
    return reason_not_member(address, task, run, declares=False)


def reason_not_member(address: str, task: Task, run: str, declares: bool = True) -> str | None:
    """Returns why `task` of this run is not at an address; None if it is.

    A server without an entry may be a member, unless `declares` is true: servers then have one
    from the start.
    """
    reason = probe.reason_not_serving(address)
    if reason is not None:
        return reason
    try:
        stored = key_value.read(f"grpc://{address}", task, _KEY)
    except (PeerError, tf1.errors.UnavailableError):
        return "no answer"
    except tf1.errors.UnimplementedError:
        return "not TensorFlow"
    except tf1.errors.OpError:  # The server is that of another task.
        return "other cluster"
    return None if stored == run or not (stored or declares) else "other cluster"


def chief_check(cluster: ClusterSpec, has_coordinator: bool, run: str) -> Check:
    """Returns a check of the chief, for tasks that wait for it or serve it.

    The check reads the run of the chief's server until it has recognized the chief, and again after
    each absence. In between, an open port is enough, because a chief that is stopped, or on a busy
    machine, does not answer.
    """
    task = chief_task(cluster)
    address = cluster.address_of(task)
    # Without parameter servers, and as a pure coordinator, the chief starts its server when all
    # tasks have met, and the server gets its entry a moment later.
    starts_late = task.job == "chief" and has_coordinator or "ps" not in cluster.jobs
    reason_stranger = reason_not_met if starts_late else reason_not_member
    recognized = False

    def check() -> str | None:
        nonlocal recognized
        known = probe.reason_unreachable
        reason = known(address) if recognized else reason_stranger(address, task, run)
        recognized = reason is None
        return reason

    return check


def _greeting(run: str) -> bytes:
    return _GREETING + run.encode() + b"\n"
