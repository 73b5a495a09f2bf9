"""A training from start to end, in one task of a cluster or in a process of its own."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable

import compat
from compat import datasets, tf1
from compat.cluster import roles
from compat.cluster.roles import Role, role
from compat.cluster.spec import ClusterSpec, Task
from compat.liveness import shared_folder, watchdog
from compat.runtime.interface import current_runtime
from compat.tracking import Console, Writer, closing_lines
from experiments.evaluation import early_stopping
from experiments.evaluation.evaluate import evaluate
from experiments.evaluation.history import Evaluation
from experiments.evaluation.selection import Selection
from experiments.launching import command_line
from experiments.launching.signals import Stop, Stopped
from experiments.recording import completion
from experiments.recording.record import Recording, check_logdir
from experiments.recording.report import DivergedError, Reporter, check_finite
from experiments.settings.config import Config
from experiments.settings.schedule import Schedule
from experiments.training import devices, placement
from experiments.training.program import Program, build

MONITOR = ("validation/accuracy", "max")


def run(config: Config, cluster: ClusterSpec | None, task: Task, stop: Stop) -> None:
    """Does the part of `task`, from start to end.

    Args:
      config: what to train.
      cluster: None for a training in this process alone.
      task: which part of the cluster this process is.
      stop: whether the user wants to end it.

    Raises:
      UserError: a setting, the data or the log folder does not do; or the cost is no number.
      PeerError: a task of the cluster did not come or was lost.
      Stopped: the user ended it; what was reached is saved.
    """
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    runtime = compat.select_runtime(config.runtime)
    if config.sync and runtime.name == "modern":
        raise compat.UserError(
            "--sync is not available on the modern runtime, where parameter-server training is "
            "asynchronous; use --strategy=multi_worker, or --runtime=legacy --sync"
        )
    if config.sync and cluster is None:
        raise compat.UserError("--sync aggregates several workers; use it with --strategy=ps")
    if cluster is not None:
        workers = roles.num_workers(cluster, runtime.name)
        if config.replicas_to_aggregate > workers:
            raise compat.UserError(
                f"--replicas_to_aggregate={config.replicas_to_aggregate} is more than there are "
                f"workers; give 1 to {workers}, or leave it out for all"
            )
        if _is_complete(config):
            return
    what = Role.TRAIN_AS_CHIEF if cluster is None else role(task, cluster, runtime.name)
    devices.hide_gpus(task, what)
    if runtime.name == "modern":
        devices.configure_eager(config, alone=cluster is None)
    data = None
    if what is not Role.SERVE:
        # Before the server starts: others need not come if there is nothing to train on.
        if what is not Role.TRAIN:
            check_logdir(config.logdir)
        data = datasets.load(config.dataset, config.data_dir)
    server = None
    try:
        server = None if cluster is None else _serve(config, cluster, task, stop)
        if server is not None and config.shared_logdir:
            shared_folder.check(server, config.logdir)
        if data is not None:
            _train(config, server, data, stop)
        elif server is not None:
            # Without it the chief, which was asked to end as well, could not save what was reached.
            with stop.deferred():
                server.join(lambda: stop.linger(server.chief_runs))
    except BaseException as error:
        lost = None if server is None else server.ends_by(error)
        # Others may have come to the end without this one, and gone.
        if isinstance(lost or error, compat.PeerError) and _is_complete(config):
            return
        # What was lost, or a call that was left behind, may hold up Python's end, or abort it.
        amiss = (
            lost is not None or watchdog.is_stuck() or (isinstance(error, Stopped) and error.loses)
        )
        if server is not None and (server.serves or amiss):
            server.announce_end()  # For Python's end, which would, is passed over.
            command_line.end_at_once(lost or error)
        if lost is None:
            raise
        raise lost from error


def _is_complete(config: Config) -> bool:
    """Whether the very training is complete; if so, the user is told."""
    step = completion.step(config)
    if step is not None:
        print(completion.message(config.logdir, step))
    return step is not None


def _serve(config: Config, cluster: ClusterSpec, task: Task, stop: Stop) -> compat.Server:
    return compat.Server(
        cluster,
        task.job,
        task.index,
        config=devices.session_config(config),
        runtime=config.runtime,
        rendezvous_timeout=config.rendezvous_timeout,
        run_token=config.run_token,
        allow_network=config.allow_network,
        while_waiting=stop.give_up,
    )


def _train(
    config: Config, server: compat.Server | None, data: datasets.Dataset, stop: Stop
) -> None:
    """Trains, as the chief or as another worker of the legacy runtime."""
    started = time.monotonic()
    chief = server is None or server.is_chief
    together = server is None or config.sync or server.synchronous
    num_workers = 1 if server is None or together else server.num_workers
    schedule = make_schedule(config, len(data.train.labels), num_workers)
    # Every trainer draws its own batches: a coordinator for all workers, a worker for itself.
    number = 0 if server is None else server.trainer_index
    batches = datasets.Batches(len(data.train.labels), config.batch_size, config.seed + number)
    program = build(config, server, data, num_workers)
    supervisor = compat.Supervisor(
        is_chief=chief,
        logdir=config.logdir,
        summary_op=None,
        summary_writer=None,  # The recording has one; no more than one writes to a folder.
        save_summaries_secs=0,
        save_model_secs=0,
        sync_optimizer=program.sync_optimizer,
    )
    console = Console(config.logdir if chief else None, schedule.total_steps if chief else None)
    target = server.target if server else ""
    with contextlib.ExitStack() as record, supervisor.managed_session(
        target, devices.session_config(config)
    ) as session, stop.deferred(lambda error: server.ends_by(error) if server else None):
        first = session.planned_step
        batches.skip(first // (1 if current_runtime().name == "modern" else num_workers))
        if not chief:
            end = early_stopping.Announcement(server)
            while _goes_on(session, schedule, stop, lambda: end.poll(session.planned_step)):
                size = schedule.loop_size(session.planned_step)
                values = session.run_many(program.train, batches.next(size))
                check_finite(values, config.learning_rate)
            return
        if config.log_device_placement:
            console.say(placement.table(program.train))
        # Closed last, when the other tasks have been told that the training is over.
        recording = record.enter_context(Recording(config, data, server, first, console))
        patience = config.early_stopping_patience
        if patience is None and config.eval_in_chief:
            patience = 0  # No other process evaluates, so none has the patience.
        select = None
        if config.eval_in_chief:
            selection = Selection(config.logdir, *MONITOR, patience or 0, first or -1, console.say)
            select = record.enter_context(selection).take
        reporter = _reporter(
            config, schedule, supervisor, session, program, data, recording.writer, console, select
        )
        reporter.request = early_stopping.standing(config.logdir, first, patience)
        recording.start(
            schedule.total_steps,
            program.train.graph_def(),
            data.train.images[:16],
            reporter.request,
        )
        while _goes_on(session, schedule, stop, lambda: reporter.request is not None):
            size = schedule.loop_size(session.planned_step)
            reporter.report(session.run_many(program.train, batches.next(size)))
        request = None
        if session.planned_step < schedule.total_steps and not stop.requested:
            request = reporter.request
            early_stopping.announce(server)
        for values in session.drain():
            reporter.report(values)
        if request is not None:
            recording.ended_early(request, reporter.step)
        if reporter.step > first:
            recording.artifact(reporter.save())
        if stop.requested:
            recording.stopped()
            return
        test = evaluate(session, program.evaluate, data.test)
        recording.finish(test)
        for line in closing_lines(test["accuracy"], time.monotonic() - started, reporter.cost):
            console.say(line)


def _goes_on(
    session: compat.Session, schedule: Schedule, stop: Stop, ends_early: Callable[[], bool]
) -> bool:
    """Whether there are updates left to make, and nobody wants to end the training."""
    if session.planned_step >= schedule.total_steps:
        return False
    ending = session.agree(stop.requested or ends_early())
    # All know now that it ends, so they ask each other once more: whether because one was stopped.
    if ending and session.agree(stop.requested):
        stop.follow()
    return not ending


def make_schedule(config: Config, examples: int, num_workers: int) -> Schedule:
    """Returns the course of a training on `examples` examples.

    Raises:
      UserError: a batch is larger than the training set.
    """
    batches = examples // config.batch_size
    if batches == 0:
        raise compat.UserError(
            f"--batch_size={config.batch_size} is more than the {examples} training examples; "
            "give fewer"
        )
    modern = current_runtime().name == "modern"
    return Schedule(
        batches_per_epoch=batches,
        num_workers=num_workers,
        total_steps=config.max_steps or config.epochs * batches * num_workers,
        steps_per_loop=config.steps_per_loop or (50 if modern else 1),
        log_every=config.log_every,
    )


def _reporter(
    config: Config,
    schedule: Schedule,
    supervisor: compat.Supervisor,
    session: compat.Session,
    program: Program,
    data: datasets.Dataset,
    writer: Writer,
    console: Console,
    select: Callable[[str, Evaluation], None] | None,
) -> Reporter:
    weights = {v.name.rpartition(":")[0]: v for v in program.model.trainable_variables}
    first_layer = program.model.first_layer.name.rpartition(":")[0]

    def read_weights() -> Any:
        values = session.read(weights)
        return values, values[first_layer]

    return Reporter(
        config,
        schedule,
        session.planned_step,
        writer,
        console,
        evaluate=lambda: evaluate(session, program.evaluate, data.validation),
        save=lambda: _save(config, supervisor, session),
        read_weights=read_weights,
        select=select,
    )


def _save(config: Config, supervisor: compat.Supervisor, session: compat.Session) -> str:
    """Writes a checkpoint; returns its prefix.

    Raises:
      DivergedError: a weight is no number, though the cost before the last update was one.
    """
    try:
        return supervisor.save(session)
    except compat.NotFiniteError as error:
        raise DivergedError(
            f"{error}; the last good checkpoint stays; "
            f"lower --learning_rate={config.learning_rate:g}"
        ) from error
