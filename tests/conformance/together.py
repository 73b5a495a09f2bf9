"""The training of `reference` by workers that make each update together, on parts of its batches.

On the legacy runtime by `SyncReplicasOptimizer`, with a parameter server; on the modern one by
`MultiWorkerMirroredStrategy`, without. Each worker prints the cost before each update, of its own
part or of the whole batch, as the runtime gives it, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
import models
from compat import tf, tf1
from experiments.training import step

if TYPE_CHECKING:
    from tests.conformance import reference
    from tests.conformance.losses import Classifier
else:
    import reference
    from losses import Classifier


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
        sync.append(tf1.train.SyncReplicasOptimizer(optimizer, server.num_workers))
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
        seen = []
        for number in range(reference.STEPS):
            batch = np.arange(number * reference.BATCH, (number + 1) * reference.BATCH)
            part = np.array_split(batch % reference.EXAMPLES, server.num_workers)
            values = session.run(train, part[server.trainer_index].astype(np.int32))
            assert values["global_step"] == number + 1, values
            seen.append(values["loss"])
    print(json.dumps(seen))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
