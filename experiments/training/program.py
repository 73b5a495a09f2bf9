"""What a task runs: an experiment's variables and steps, made once, before the session."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping

import compat
from compat import tf, tf1
from experiments.evaluation.evaluate import evaluate
from experiments.recording.schedule import Schedule
from experiments.training import inputs, step
from experiments.training.inputs import Data

CHUNK = 1000  # Examples in a call: some 120 MB of feature maps for a small convolutional network.


@dataclass(frozen=True)
class Program:
    """An experiment in this task.

    Attributes:
      experiment: an instance of its class.
      train: makes an update; None in an evaluator.
      sync_optimizer: the `SyncReplicasOptimizer` that aggregates gradients, or None.
    """

    experiment: Any
    train: Any
    sync_optimizer: Any
    _data: Data
    _evaluations: Mapping[str, compat.Step]

    def can_evaluate(self, split: str) -> bool:
        """Whether there are examples to evaluate on."""
        return split in self._evaluations

    def evaluate(self, session: compat.Session, split: str) -> dict[str, float]:
        """Returns "global_step", the loss, and the metrics of a split by name."""
        examples = getattr(self._data, split)
        evaluation = self._evaluations[split]
        chunks: Iterable[tuple[Any, ...]] = itertools.repeat(())
        if callable(examples):
            session.restart(evaluation)
        else:
            chunks = inputs.chunks(examples, CHUNK)
        return evaluate(session, evaluation, chunks, self.experiment.metrics())


def build(experiment: Any, server: compat.Server | None, data: Data, schedule: Schedule) -> Program:
    """Makes variables and steps, on the parameter servers if there are any."""
    settings = experiment.settings
    setter = None
    if server is not None:
        setter = compat.replica_device_setter(
            worker_device=server.task.name, cluster=server.cluster
        )
    wrapped: list[Any] = []

    def wrap(optimizer: Any) -> Any:
        if not settings.sync or server is None:
            return optimizer
        wrapped.append(
            tf1.train.SyncReplicasOptimizer(
                optimizer,
                replicas_to_aggregate=settings.replicas_to_aggregate or server.num_workers,
                total_num_replicas=server.num_workers,
            )
        )
        return wrapped[-1]

    with compat.device(setter):
        global_step = compat.get_or_create_global_step()
        experiment.build()
        update = step.training_step(
            experiment,
            global_step,
            wrap=wrap,
            stale=schedule.num_workers > 1,
            remote=server is not None and not server.synchronous,
        )
        # A stream is repeated without end where the number of updates ends the run.
        repeats = settings.epochs if schedule.total_steps is None else None
        train = _train(update, data, settings.batch_size, repeats)
        sync = wrapped[0] if wrapped else None
        return Program(experiment, train, sync, data, _evaluations(experiment, data))


def build_evaluation(experiment: Any, data: Data) -> Program:
    """Makes the variables of the model alone, in this process, and the steps that evaluate it."""
    with compat.device(None):
        compat.get_or_create_global_step()
        experiment.build()
        return Program(experiment, None, None, data, _evaluations(experiment, data))


def _train(
    update: Callable[[Any], Any], data: Data, batch_size: int, repeats: int | None
) -> compat.Step:
    if data.streams:
        return compat.step(
            update, [], dataset=lambda worker, workers: data.train(worker, workers).repeat(repeats)
        )
    names = sorted(data.train)

    def on_indices(*tensors: Any) -> Any:
        *arrays, indices = tensors
        return update({name: tf.gather(array, indices) for name, array in zip(names, arrays)})

    return compat.step(
        on_indices,
        [tf.TensorSpec([batch_size], tf.int32)],
        per_worker_data=[data.train[name] for name in names],
    )


def _evaluations(experiment: Any, data: Data) -> dict[str, compat.Step]:
    """Makes a step for each split that is evaluated; one for both that are arrays of one kind."""
    found: dict[str, compat.Step] = {}
    for split in ("validation", "test"):
        examples = getattr(data, split)
        if callable(examples):
            found[split] = compat.step(
                lambda batch: step.evaluate(experiment, batch),
                [],
                on_coordinator=True,
                dataset=examples,
            )
        elif examples is not None:
            specs = inputs.specs(examples)
            arrays = {} if callable(data.validation) else data.validation
            shared = "validation" in found and inputs.specs(arrays) == specs
            found[split] = found["validation"] if shared else _of_arrays(experiment, examples)
    return found


def _of_arrays(experiment: Any, examples: inputs.Arrays) -> compat.Step:
    names = sorted(examples)
    return compat.step(
        lambda *arrays: step.evaluate(experiment, dict(zip(names, arrays))),
        inputs.specs(examples),
        on_coordinator=True,
    )
