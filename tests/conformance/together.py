"""The training of `reference` by workers that make each update together, on parts of its batches.

On the legacy runtime by `SyncReplicas`, with a parameter server; on the modern one by
`MultiWorkerMirroredStrategy`, without. After each call a worker has the global step and the cost
before the last update, of its own part or of the whole batch, as the runtime gives it. It prints
them as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
import models
from compat import tf
from compat.runtime.program.replicas import SyncReplicas
from experiments.training.updates import step

if TYPE_CHECKING:
    from tests.conformance import reference
    from tests.conformance.losses import Classifier
else:
    import reference
    from losses import Classifier

CALLS = [1] * 5 + [20, 5]  # Updates in each.


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    server = compat.Server(settings["cluster"], settings["job"], settings["index"])
    if server.serves:
        server.join()
        return
    sync: list[Any] = []

    def wrap(optimizer: Any) -> Any:
        if server.synchronous:
            return optimizer
        replicas = server.num_workers
        sync.append(SyncReplicas(optimizer, replicas, replicas, server.trainer_index))
        return sync[0]

    with compat.device(compat.replica_device_setter(cluster=server.cluster)):
        global_step = compat.get_or_create_global_step()
        classifier = Classifier(models.MLP(seed=1 + server.trainer_index), settings["optimizer"])
        update = step.training_step(classifier, global_step, wrap=wrap)
        train = compat.step(
            lambda images, labels, indices: update(
                {"images": tf.gather(images, indices), "labels": tf.gather(labels, indices)}
            ),
            [tf.TensorSpec([None], tf.int32)],
            per_worker_data=list(reference.data()),
        )
    supervisor = compat.Supervisor(
        is_chief=server.is_chief, logdir=None, sync_optimizer=sync[0] if sync else None
    )
    with supervisor.managed_session(server.target) as session:
        seen, made = [], 0
        for count in CALLS:
            numbers = np.arange(made * reference.BATCH, (made + count) * reference.BATCH)
            batches = (numbers % reference.EXAMPLES).reshape(count, -1).astype(np.int32)
            parts = np.array_split(batches, server.num_workers, axis=1)
            if count > 1 and settings["runtime"] == "legacy":
                train.made = 100  # After so many a session makes several in a call.
            values = session.run_many(train, parts[server.trainer_index])
            made += count
            seen.append((values["global_step"], values["loss"]))
    print(json.dumps(seen))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
