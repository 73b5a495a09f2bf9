"""Servers of two trainings in one process; prints what each address is taken for, by case."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any, Iterator

from compat import tf1
from compat.cluster import ports
from compat.cluster.liveness import identity
from compat.cluster.spec import ClusterSpec, Task


@contextlib.contextmanager
def silent(port: int = 0) -> Iterator[str]:
    """Takes calls and never says a word, as another program may, or a task that is stopped."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def recognitions() -> dict[str, list[str | None]]:
    """Returns what a chief's address is taken for as who is there changes, by its runtime."""
    found = {}
    for runtime in ("legacy", "modern"):
        with ports.reserve() as held:
            address, port = held.address, held.port
        cluster = ClusterSpec({"chief": [address], "ps": ["h:1"], "worker": ["h:2"]})
        training = identity.fingerprint(cluster, "token")
        reason = identity.chief_check(cluster, runtime == "modern", training)
        found[runtime] = [reason()]
        with silent(port):
            found[runtime].append(reason())
        server = tf1.train.Server({"chief": [address]}, job_name="chief")
        found[runtime].append(reason())  # A coordinator gets its entry a moment later.
        identity.declare(server.target, Task("chief", 0), training)
        others = identity.chief_check(
            cluster, runtime == "modern", identity.fingerprint(cluster, "other")
        )
        found[runtime] += [reason(), others()]
    return found


def stopped() -> list[str | None]:
    """Returns what is said of a chief that was met, then is silent, away, and silent again."""
    with ports.reserve() as held:
        address, port = held.address, held.port
    cluster = ClusterSpec({"worker": [address, "h:1"]})
    training = identity.fingerprint(cluster, "token")
    reason = identity.chief_check(cluster, True, training)
    with identity.declared_until_started(address, training):
        found = [reason()]
    with silent(port):
        found.append(reason())
    found.append(reason())
    with silent(port):
        found.append(reason())
    return found


def main(no_word: str) -> None:
    held = [ports.reserve() for _ in range(6)]
    ps, worker, other_ps, other_worker, meeting, other_meeting = (r.address for r in held)
    ours = ClusterSpec({"ps": [ps], "worker": [worker]})
    # The other one was told of our ps, as its second worker; so its first one is not at our place.
    others = ClusterSpec({"ps": [other_ps], "worker": [other_worker, worker]})
    for reservation in held:
        reservation.release()
    training = identity.fingerprint(ours, "token")
    server = tf1.train.Server(ours.as_dict(), job_name="ps")
    undeclared = identity.reason_not_member(ps, Task("ps", 0), training)
    joining = identity.reason_not_met(ps, Task("ps", 0), training)
    identity.declare(server.target, Task("ps", 0), training)
    foreign = tf1.train.Server(others.as_dict(), job_name="worker", task_index=1)
    identity.declare(foreign.target, Task("worker", 1), identity.fingerprint(others, "token"))
    elsewhere = identity.fingerprint(others, "token")
    with identity.declared_until_started(meeting, training), identity.declared_until_started(
        other_meeting, elsewhere
    ):
        report: dict[str, Any] = {
            "undeclared": undeclared,
            "member": identity.reason_not_member(ps, Task("ps", 0), training),
            "other token": identity.reason_not_member(
                ps, Task("ps", 0), identity.fingerprint(ours, "another")
            ),
            "other hosts": identity.reason_not_member(
                ps, Task("ps", 0), identity.fingerprint(others, "token")
            ),
            "other task": identity.reason_not_member(worker, Task("worker", 0), training),
            "other training": identity.reason_not_member(worker, Task("worker", 1), training),
            "no TensorFlow": identity.reason_not_member(meeting, Task("ps", 0), training),
            "no word": identity.reason_not_member(no_word, Task("ps", 0), training),
            "meeting": identity.reason_not_met(meeting, Task("ps", 0), training),
            "other meeting": identity.reason_not_met(other_meeting, Task("ps", 0), training),
            "has met": identity.reason_not_met(ps, Task("ps", 0), training),
            "joins the others": joining,
            "other has met": identity.reason_not_met(worker, Task("worker", 1), training),
            "not met": identity.reason_not_met(no_word, Task("ps", 0), training),
            "nobody meets": identity.reason_not_met(other_ps, Task("ps", 0), training),
            "nobody": identity.reason_not_member(other_ps, Task("ps", 0), training),
        }
    report["recognised"], report["stopped"] = recognitions(), stopped()
    print(json.dumps(report))


if __name__ == "__main__":
    with silent() as place:  # Before `main` has a port that is free again.
        main(place)
