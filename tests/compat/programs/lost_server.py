"""A server that is killed amid a session on it; prints what the session raises and complains of."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import time
from typing import Any

from compat import tf1
from compat.cluster import ports
from compat.cluster.liveness import key_value
from compat.cluster.spec import Task

TASK = Task("ps", 0)


def serve(address: str, serves: Any) -> None:
    server = tf1.train.Server({TASK.job: [address]}, job_name=TASK.job)
    serves.set()
    time.sleep(120)
    del server


def main() -> None:
    processes = multiprocessing.get_context("spawn")
    serves = processes.Event()
    with ports.reserve() as held:
        held.share()
        address = held.address
        server = processes.Process(target=serve, args=(address, serves), daemon=True)
        server.start()
        assert serves.wait(120)
    complaints, raised = io.StringIO(), None
    with contextlib.redirect_stderr(complaints):
        try:
            with key_value.session(f"grpc://{address}", TASK.name, patience=2.0) as session:
                session.run(tf1.constant("there"))
                server.kill()
                server.join()
                session.run(tf1.constant("gone"))
        except tf1.errors.OpError as error:
            raised = type(error).__name__
    print(json.dumps({"raised": raised, "complaints": complaints.getvalue()}))


if __name__ == "__main__":
    main()
