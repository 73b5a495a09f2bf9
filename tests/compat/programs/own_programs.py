"""One task of a cluster whose program has no step: by plain calls it trains, whichever it is."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

import compat
from compat import tf1

UPDATES = 10


def train(session: Any, update: Any, total: Any, expected: float) -> float:
    """Makes the updates of this task, and waits for those of the others; returns the total."""
    for _ in range(UPDATES):
        session.run(update)
    while session.run(total) < expected:
        time.sleep(0.05)
    return float(session.run(total))


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    server = compat.Server(settings["cluster"], settings["job"], settings["index"])
    if settings["job"] == "ps":
        server.join()
        return
    with compat.device(
        compat.replica_device_setter(worker_device=server.task.name, cluster=server.cluster)
    ):
        total = tf1.get_variable("total", initializer=np.float32(0))
        update = total.assign_add(1.0)
    tasks = sum(len(hosts) for job, hosts in settings["cluster"].items() if job != "ps")
    is_chief = settings["job"] == "chief"
    found = []
    for sessions in (1, 2):
        # The second one finds the variables as the first has left them.
        supervisor = compat.Supervisor(is_chief=is_chief and sessions == 1)
        with supervisor.managed_session(server.target) as session:
            found.append(train(session, update, total, sessions * UPDATES * tasks))
    print(json.dumps({"found": found, "is_chief": server.is_chief, "serves": server.serves}))


if __name__ == "__main__":
    compat.run_main(lambda argv: main(json.loads(argv[1])))
