"""Servers of two trainings in one process; prints what each address is taken for, by case."""

from __future__ import annotations

import json
import socket

from compat import membership, ports, tf1
from compat.cluster_spec import ClusterSpec, Task


def main() -> None:
    held = [ports.reserve() for _ in range(6)]
    ps, worker, other_ps, other_worker, meeting, other_meeting = (r.address for r in held)
    ours = ClusterSpec({"ps": [ps], "worker": [worker]})
    # The other one was told of our ps, as its second worker; so its first one is not at our place.
    others = ClusterSpec({"ps": [other_ps], "worker": [other_worker, worker]})
    for reservation in held:
        reservation.release()
    training = membership.training(ours, "token")
    server = tf1.train.Server(ours.as_dict(), job_name="ps")
    undeclared = membership.reason_not_member(ps, Task("ps", 0), training)
    joining = membership.reason_not_met(ps, Task("ps", 0), training)
    membership.declare(server.target, Task("ps", 0), training)
    foreign = tf1.train.Server(others.as_dict(), job_name="worker", task_index=1)
    membership.declare(foreign.target, Task("worker", 1), membership.training(others, "token"))
    with socket.socket() as silent, membership.declared(meeting, training), membership.declared(
        other_meeting, membership.training(others, "token")
    ):
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        no_tensorflow = f"127.0.0.1:{silent.getsockname()[1]}"
        report = {
            "undeclared": undeclared,
            "member": membership.reason_not_member(ps, Task("ps", 0), training),
            "other token": membership.reason_not_member(
                ps, Task("ps", 0), membership.training(ours, "another")
            ),
            "other hosts": membership.reason_not_member(
                ps, Task("ps", 0), membership.training(others, "token")
            ),
            "other task": membership.reason_not_member(worker, Task("worker", 0), training),
            "other training": membership.reason_not_member(worker, Task("worker", 1), training),
            "no TensorFlow": membership.reason_not_member(no_tensorflow, Task("ps", 0), training),
            "meeting": membership.reason_not_met(meeting, Task("ps", 0), training),
            "other meeting": membership.reason_not_met(other_meeting, Task("ps", 0), training),
            "has met": membership.reason_not_met(ps, Task("ps", 0), training),
            "joins the others": joining,
            "other has met": membership.reason_not_met(worker, Task("worker", 1), training),
            "not met": membership.reason_not_met(no_tensorflow, Task("ps", 0), training),
            "nobody meets": membership.reason_not_met(other_ps, Task("ps", 0), training),
            "nobody": membership.reason_not_member(other_ps, Task("ps", 0), training),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
