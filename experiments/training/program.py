"""Builds an experiment's variables and steps in a task, once, before the session is opened."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

import compat
from compat import UserError, tf, tf1
from compat.checkpoint.files import exists
from compat.checkpoint.io import CheckpointIO
from compat.runtime.device_setter import describe_load, stored_bytes
from compat.runtime.graphs.device_placement import shortened
from compat.runtime.graphs.homes import task_device
from compat.runtime.interface import Runtime
from experiments.evaluation import best_checkpoint
from experiments.evaluation.evaluate import evaluate
from experiments.evaluation.metrics.metric import Metric, metrics_of
from experiments.training import inputs
from experiments.training.experiment import Experiment
from experiments.training.inputs import Data
from experiments.training.recording.callback import Callbacks
from experiments.training.recording.report import named
from experiments.training.recording.schedule import Schedule
from experiments.training.seeds import seed_operations, seeded_layers, seeded_variables
from experiments.training.updates import step
from experiments.training.updates.local_updates import downpour
from experiments.training.updates.local_updates.elastic import ElasticCopies
from experiments.training.warm_start import warm_start

# Examples in a call of an evaluation: 120 MB of feature maps for a small convolutional network.
CHUNK = 1000


@dataclass(frozen=True)
class Program:
    """The variables and steps of an experiment, as this task runs them."""

    experiment: Any
    runtime: Runtime
    data: Data
    train: Any  # The step that makes an update; None in an evaluator.
    sync_optimizer: Any  # The `SyncReplicasOptimizer` that averages gradients, or None.
    evaluations: Mapping[str, compat.Step]  # A step for each split that is evaluated, by its name.
    metrics: Mapping[str, Any]  # By name; they hold the results of the last evaluation.
    callbacks: Callbacks  # The hooks of the experiment, and those of its callbacks.
    used: Any = (
        None  # The variable with the number of batches to skip when a stream is opened; or None.
    )

    def go_on(self, session: compat.Session, used: int) -> None:
        """Opens the stream of this worker again, after the `used` batches."""
        if self.used is not None and used:
            session.assign({"used": self.used}, {"used": np.asarray(used)})
            session.restart(self.train)

    def evaluate(self, session: compat.Session, split: str) -> dict[str, float]:
        """Evaluates a split; returns "global_step", the loss and the metrics by name."""
        examples = getattr(self.data, split)
        evaluation = self.evaluations[split]
        chunks: Iterable[tuple[Any, ...]] = itertools.repeat(())
        if callable(examples):
            session.restart(evaluation)
        else:
            chunks = inputs.chunks(examples, CHUNK)
        return evaluate(session, evaluation, chunks, self.metrics)

    def placement(self) -> str:
        """Returns tables of the devices of all variables, and of all operations of an update."""
        variables = [("variable", "shape", "device")]
        for name, variable in sorted(self.runtime.variables().items()):
            device = shortened(task_device(variable.op)) or "(this process)"
            variables.append((name, str(variable.shape.as_list()), device))
        here = "(the worker that computes)" if self.runtime.server else "(this process)"
        operations = [("operation", "kind", "device")]
        operations += [(name, kind, at or here) for name, kind, at in self.train.operations()]
        stored = self.stored()
        load = f"{describe_load(stored)}\n" if stored else ""
        return f"{load}{_table(variables)}\n{_table(operations)}"

    def stored(self) -> list[int]:
        """Returns the bytes of variables on each parameter server, empty if there is none."""
        server = self.runtime.server
        if server is None or "ps" not in server.cluster.jobs:
            return []
        servers = 1 + max(server.cluster.task_indices("ps"))
        return stored_bytes(self.runtime.variables().values(), servers)


def schedule_of(
    settings: Any, runtime: Runtime, data: Data, server: compat.Server | None
) -> Schedule:
    """Returns the schedule of a run.

    A run ends after a number of updates if all workers take their batches from one sequence, or
    with --max_steps. If each worker has batches of its own, it ends when all batches are used.
    """
    together = server is None or settings.sync or server.synchronous
    num_workers = 1 if server is None or together else server.num_workers
    coordinates = runtime.has_coordinator
    ends_with_data = not (coordinates or together)
    total: int | None = None
    if data.streams:
        shards = 1 if server is None else len(server.shards)
        sizes = inputs.sizes(data.train, shards)
        batches = None if sizes is None else max(1, sum(sizes) // shards)
        # Synchronous workers of the legacy runtime end together, with the shortest shard.
        ends_with_data = coordinates or not settings.sync
        if sizes is not None:
            lockstep = together and (server is None or not coordinates or server.synchronous)
            updates = min(sizes) if lockstep else sum(sizes) // (shards if together else 1)
            total = settings.epochs * updates
            batches = batches if num_workers > 1 else max(1, updates)
    else:
        examples = inputs.examples(data.train)
        batches = examples // settings.batch_size
        if batches == 0:
            raise compat.UserError(
                f"--batch_size={settings.batch_size} is more than the {examples} training "
                "examples; give fewer"
            )
        total = settings.epochs * batches * num_workers
    total = settings.max_steps or total
    if total is not None and (settings.profiled or (0, 0))[0] >= total:
        raise compat.UserError(
            f"--profile_steps={settings.profile_steps} begins when the run has ended, at step "
            f"{total}; give earlier steps"
        )
    # With --replicas_to_aggregate, in a call of several updates the slowest worker could wait for
    # updates that no other worker makes any more.
    most = 50 if coordinates else 1 if settings.replicas_to_aggregate else 20
    # A multiple of the period: else calls of several sizes would take turns, and each size has to
    # be traced and optimized.
    period = settings.communication_period
    steps_per_loop = max(period, most - most % period)
    intervals = (settings.summary_every, settings.eval_every, settings.checkpoint_every)
    return Schedule(
        batches_per_epoch=batches,
        num_workers=num_workers,
        total_steps=None if ends_with_data and not settings.max_steps else total,
        known_steps=total,
        steps_per_loop=settings.steps_per_loop or steps_per_loop,
        log_every=settings.log_every,
        intervals=tuple(every for every in intervals if every),
        stops=settings.profiled or (),
        num_loops=1 if coordinates else num_workers,
    )


def build(
    experiment: Any,
    runtime: Runtime,
    data: Data,
    server: compat.Server | None = None,
    schedule: Schedule | None = None,
    used: Callable[[int], int] = lambda worker: 0,
) -> Program:
    """Makes the variables and the steps; without a schedule there is no training step.

    If there are parameter servers, they store the variables. `used` returns how many batches of its
    stream a worker has used; it is called when the worker opens the stream.
    """
    settings = experiment.settings
    experiment.total_steps = None if schedule is None else schedule.last_step
    seed_operations(settings.seed, server.trainer_index if server else 0)
    setter = train = opened = None
    if server is not None:
        setter = compat.replica_device_setter(
            worker_device=server.task.name, cluster=server.cluster
        )
    wrapped: list[Any] = []

    def wrap(optimizer: Any) -> Any:
        if not settings.sync or server is None:
            return optimizer
        number = settings.replicas_to_aggregate or server.num_workers
        wrapped.append(runtime.replicated(optimizer, number))
        return wrapped[-1]

    period = settings.communication_period
    copies = None
    if server is not None and period > 1:
        share = settings.moving_rate / server.num_workers
        is_elastic = settings.algorithm == "easgd"
        copies = ElasticCopies(share) if is_elastic else downpour.Copies()
    with compat.device(setter), copies.scope() if copies else contextlib.nullcontext():
        global_step = compat.get_or_create_global_step()
        with seeded_variables(settings.seed), seeded_layers(settings.seed):
            experiment.build()
        if schedule is not None:
            stale = schedule.num_workers > 1
            if copies is not None:
                update = downpour.training_step(experiment, global_step, copies, period, stale)
            else:
                update = step.training_step(
                    experiment,
                    global_step,
                    wrap=wrap,
                    stale=stale,
                    remote=server is not None and not (server.synchronous or settings.sync),
                    counts=data.streams,
                )
            # If the number of updates ends the run, a stream is repeated without end.
            repeats = settings.epochs if schedule.total_steps is None else None
            if data.streams and not runtime.has_coordinator:
                opened = compat.worker_variable(np.int64(0), "batches_used")
            train = _train(update, data, settings, repeats, opened, used)
        sync = wrapped[0] if wrapped and not runtime.has_coordinator else None
        evaluations = _evaluations(experiment, data, copies)
        metrics = metrics_of(experiment)
        callbacks = Callbacks(experiment)
        made = experiment, runtime, data, train, sync, evaluations, metrics, callbacks
        found = Program(*made, opened)
        _check_monitor(found)
        return found


def _check_monitor(program: Program) -> None:
    """Raises a `UserError` if no evaluation has the value `monitor`; a run would find out late."""
    experiment, evaluation = program.experiment, program.evaluations.get("validation")
    patience = experiment.settings.early_stopping_patience
    if evaluation is None and patience:
        raise UserError(
            f"--early_stopping_patience={patience} counts evaluations, and "
            f"{type(experiment).__name__}.data() has no 'validation' split; return one, or leave "
            "the patience out"
        )
    if evaluation is None or experiment.monitor == Experiment.monitor:
        return  # The default monitor stands for the loss, which may have another name.
    scalars = set(evaluation.names) - {"examples", "global_step"}
    values = named("validation", dict.fromkeys([*scalars, *program.metrics]), experiment.loss_name)
    if experiment.monitor not in values:
        raise UserError(
            f"monitor {experiment.monitor!r} of {type(experiment).__name__} is not a value of an "
            f"evaluation; set monitor to one of {', '.join(sorted(values))}"
        )


def first_values(settings: Any, runtime: Runtime) -> Callable[[Any], None] | None:
    """Returns a function that initializes a session's variables as --warm_start says.

    It is None without that flag, or if the run resumes.
    """
    path = settings.warm_start
    if path is None or CheckpointIO(settings.logdir).history():
        return None
    try:
        is_prefix = exists(path) and not tf1.gfile.IsDirectory(path)
    except tf1.errors.OpError as error:  # Such as a file system that TensorFlow does not support.
        raise UserError(
            f"--warm_start={path} cannot be read ({error.message}); name a log folder, or the "
            "prefix of a checkpoint, on this machine"
        ) from None
    prefix = path if is_prefix else best_checkpoint.find(path, given="--warm_start")[1]
    init_fn, found = warm_start(prefix, runtime)
    others = f"; others begin anew: {', '.join(found.different)}" if found.different else ""
    print(f"warm start: {len(found.same)} variables begin with the values of {prefix}{others}")
    return init_fn


def _train(
    update: Callable[[Any], Any],
    data: Data,
    settings: Any,
    repeats: int | None,
    opened: Any,
    used: Callable[[int], int],
) -> compat.Step:
    if data.streams:
        if settings.communication_period > 1:
            raise UserError(
                f"--communication_period={settings.communication_period} needs a training split of "
                "arrays; leave it out for one of tf.data"
            )

        def stream(worker: int, workers: int) -> Any:
            left = tf.constant(used(worker), tf.int64) if opened is None else opened.read_value()
            return inputs.passes(data.train(worker, workers), repeats, left)

        return compat.step(update, [], dataset=stream)
    names, period = sorted(data.train), settings.communication_period

    def on_indices(*tensors: Any) -> Any:
        *arrays, indices = tensors
        return update({name: tf.gather(array, indices) for name, array in zip(names, arrays)})

    return compat.step(
        on_indices,
        [tf.TensorSpec([*([period] if period > 1 else []), settings.batch_size], tf.int32)],
        per_worker_data=[data.train[name] for name in names],
        updates=period,
    )


def _evaluations(
    experiment: Any, data: Data, copies: downpour.Copies | None
) -> dict[str, compat.Step]:
    """Makes a step for each split that is evaluated.

    Validation and test share one step if both are arrays with the same names, shapes and types.
    """
    found: dict[str, compat.Step] = {}
    if data.validation is not None:
        found["validation"] = _evaluation(experiment, data.validation, copies)
    if data.test is not None:
        both = [examples for examples in (data.validation, data.test) if isinstance(examples, dict)]
        same = len(both) == 2 and inputs.specs(both[0]) == inputs.specs(both[1])
        found["test"] = found["validation"] if same else _evaluation(experiment, data.test, copies)
    return found


def _evaluation(experiment: Any, examples: Any, copies: downpour.Copies | None) -> compat.Step:
    def evaluate(batch: Any) -> dict[str, Any]:
        with tf.control_dependencies(copies.fetch()[1] if copies else []):
            values = step.evaluate(experiment, batch)
        for metric in metrics_of(experiment).values():
            if isinstance(metric, Metric):
                metric.check(values.keys() - {"examples"})  # A missing output ends the run now.
        return values

    if callable(examples):
        return compat.step(
            evaluate,
            [],
            on_coordinator=True,
            dataset=examples,
        )
    names = sorted(examples)
    return compat.step(
        lambda *arrays: evaluate(dict(zip(names, arrays))),
        inputs.specs(examples),
        on_coordinator=True,
    )


def _table(rows: Sequence[tuple[str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
