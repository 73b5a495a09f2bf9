"""What a task runs: an experiment's variables and steps, made once, before the session."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping

import compat
from compat import tf, tf1
from experiments.evaluation.evaluate import evaluate
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


def build(
    experiment: Any, server: compat.Server | None, data: Data, num_workers: int, repeats: int | None
) -> Program:
    """Makes variables and steps, on the parameter servers if there are any.

    Args:
      experiment: an instance of its class.
      server: of this task, None for a run in this process alone.
      data: what it is trained and evaluated on.
      num_workers: workers that make updates of their own.
      repeats: passes over a stream; None: without end.
    """
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
            stale=num_workers > 1,
            remote=server is not None and not server.synchronous,
        )
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
            update,
            [],
            dataset=lambda worker, workers: data.train(worker, workers).repeat(repeats),
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
    """Makes a step for each split that is evaluated; one for all that are arrays of one kind."""
    measure = step.evaluation_step(experiment)
    found: dict[str, compat.Step] = {}
    for split in ("validation", "test"):
        examples = getattr(data, split)
        if callable(examples):
            found[split] = compat.step(measure, [], on_coordinator=True, dataset=examples)
        elif examples is not None:
            specs = inputs.specs(examples)
            same = [
                name
                for name in found
                if not callable(getattr(data, name)) and inputs.specs(getattr(data, name)) == specs
            ]
            found[split] = found[same[0]] if same else _of_arrays(measure, sorted(examples), specs)
    return found


def _of_arrays(measure: Callable[[Any], Any], names: list[str], specs: list[Any]) -> compat.Step:
    return compat.step(
        lambda *arrays: measure(dict(zip(names, arrays))), specs, on_coordinator=True
    )
