"""Runs the updates of `replica_rows.py` on the modern runtime.

Its table has a part on each parameter server; without one each worker is a replica. Prints table
and vector after each update, and the global step, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1
from compat.runtime.graphs.homes import task_device
from compat.scripts.shims.classes import SyncReplicasOptimizer

if TYPE_CHECKING:
    from tests.conformance import replica_rows
    from tests.conformance.tasks import place
else:
    import replica_rows
    from tasks import place


def main(settings: dict[str, Any]) -> None:
    server, setter = place(settings)
    assert server is not None
    number = replica_rows.REPLICAS
    plain = replica_rows.OPTIMIZERS[settings["optimizer"]](tf1.train)
    optimizer = SyncReplicasOptimizer(plain, number, total_num_replicas=number)
    mine = slice(server.trainer_index, server.trainer_index + 1 if server.synchronous else None)
    parts: list[Any] = []

    def build(rows: Any, factors: Any) -> Any:
        split = None if server.synchronous else tf1.fixed_size_partitioner(2)
        train, *variables = replica_rows.step(tf1, optimizer, rows, factors, split)
        parts.extend(variables)
        return {"train": train}

    with compat.device(setter):
        specs = [tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.float32)]
        step = compat.step(build, specs)
    seen = []
    with compat.Supervisor().managed_session(server.target) as session:
        for number in range(settings["updates"]):
            update = replica_rows.UPDATES[number % len(replica_rows.UPDATES)]
            for call in replica_rows.feeds(update)[mine]:
                values = session.run(step, *call)
            *table, bias = session.run(parts)
            seen.append([np.concatenate(table).tolist(), bias.tolist()])
            print("updated", flush=True)
        homes = sorted({task_device(variable.op) for variable in parts})
    print(json.dumps({"seen": seen, "step": values["global_step"], "homes": homes}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
