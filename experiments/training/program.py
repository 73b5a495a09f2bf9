"""What a task runs: the model and its steps, made once, before the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import compat
import models
from compat import datasets, tf, tf1
from experiments.settings.config import Config
from experiments.training import step


@dataclass(frozen=True)
class Program:
    """What a task trains."""

    model: Any
    train: compat.Step
    evaluate: compat.Step
    sync_optimizer: Any


def build(
    config: Config, server: compat.Server | None, data: datasets.Dataset, num_workers: int
) -> Program:
    """Makes variables and steps, on the parameter servers if there are any."""
    setter = None
    if server is not None:
        setter = compat.replica_device_setter(
            worker_device=server.task.name, cluster=server.cluster
        )
    with compat.device(setter):
        global_step = compat.get_or_create_global_step()
        model = _model(config)
        optimizer = step.optimizer(config.optimizer, config.learning_rate)
        sync = None
        if config.sync and server is not None:
            optimizer = sync = tf1.train.SyncReplicasOptimizer(
                optimizer,
                replicas_to_aggregate=config.replicas_to_aggregate or server.num_workers,
                total_num_replicas=server.num_workers,
            )
        return Program(
            model,
            train=compat.step(
                step.train_step(
                    model,
                    optimizer,
                    global_step,
                    stale=num_workers > 1,
                    remote=server is not None and not server.synchronous,
                ),
                [tf.TensorSpec([config.batch_size], tf.int32)],
                resident=[data.train.images, data.train.labels],
            ),
            evaluate=_evaluation(model),
            sync_optimizer=sync,
        )


def build_evaluation(config: Config) -> compat.Step:
    """Makes the variables of the model alone, in this process, and the step that measures it."""
    with compat.device(None):
        compat.get_or_create_global_step()
        return _evaluation(_model(config))


def _model(config: Config) -> Any:
    return {"mlp": models.MLP, "cnn": models.CNN}[config.model](config.seed)


def _evaluation(model: Any) -> compat.Step:
    return compat.step(
        step.evaluation_step(model),
        [tf.TensorSpec([None, 28, 28], tf.uint8), tf.TensorSpec([None], tf.int32)],
        here=True,
    )
