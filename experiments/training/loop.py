"""The training loop: updates, and what is due between them, in the chief and in other workers."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Any, Callable, Mapping

import compat
from compat import tf1
from compat.runtime.interface import current_runtime
from compat.tracking import Console, closing_lines
from experiments.evaluation import early_stopping
from experiments.evaluation.evaluate import evaluate_best
from experiments.evaluation.selection import Selection
from experiments.launching.signals import Stop
from experiments.recording.recording import Recording
from experiments.recording.report import DivergedError, Reporter, check_finite
from experiments.recording.run import Result, Run
from experiments.recording.schedule import Schedule
from experiments.training import agreement, devices, inputs, placement
from experiments.training.inputs import Data
from experiments.training.program import Program, build


def train(experiment: Any, server: compat.Server | None, data: Data, stop: Stop) -> Result | None:
    """Trains, as the chief or as another worker of the legacy runtime.

    Args:
      experiment: what to train.
      server: of this task; None for a run in this process alone.
      data: what it is trained and evaluated on.
      stop: whether the user wants to end it.

    Returns:
      What was reached, in the chief of a run that was not stopped; else None.
    """
    settings = experiment.settings
    chief = server is None or server.is_chief
    together = server is None or settings.sync or server.synchronous
    num_workers = 1 if server is None or together else server.num_workers
    schedule = make_schedule(settings, data, num_workers)
    program = build(experiment, server, data, num_workers, _repeats(settings, schedule))
    mine = agreement.fingerprint(settings, data, current_runtime().variables().values())
    if server is not None and chief:
        server.wait_for_peers(everybody=together)
        agreement.publish(server, mine)
    supervisor = compat.Supervisor(
        is_chief=chief,
        logdir=settings.logdir,
        summary_op=None,
        summary_writer=None,  # The recording has one; no more than one writes to a folder.
        save_summaries_secs=0,
        save_model_secs=0,
        sync_optimizer=program.sync_optimizer,
    )
    target = server.target if server else ""
    with contextlib.ExitStack() as outer, supervisor.managed_session(
        target, devices.session_config(settings)
    ) as session, stop.deferred(lambda error: server.diagnose(error) if server else None):
        modern = current_runtime().name == "modern"
        skip = session.planned_step // (1 if modern else num_workers)
        trainer = server.trainer_index if server else 0
        draw = _of_stream if data.streams else _of_arrays(data, settings, trainer, skip)
        if not chief:
            assert server is not None
            agreement.check(server, mine, settings.rendezvous_timeout)
            _train_as_worker(settings, server, program, schedule, session, draw, stop)
            return None
        # The record is closed last, when the other tasks have been told that the run is over.
        return _train_as_chief(
            program, server, data, schedule, supervisor, session, draw, stop, outer
        )


def _train_as_worker(
    settings: Any,
    server: compat.Server,
    program: Program,
    schedule: Schedule,
    session: compat.Session,
    draw: Draw,
    stop: Stop,
) -> None:
    end = early_stopping.Announcement(server)
    while _continues(session, schedule, stop, lambda: end.poll(session.planned_step)):
        values = draw(session, program.train, schedule.loop_size(session.planned_step))
        if values is None:
            break
        check_finite(values, settings.learning_rate)


def _train_as_chief(
    program: Program,
    server: compat.Server | None,
    data: Data,
    schedule: Schedule,
    supervisor: compat.Supervisor,
    session: compat.Session,
    draw: Draw,
    stop: Stop,
    outer: contextlib.ExitStack,
) -> Result | None:
    started = time.monotonic()
    experiment, settings = program.experiment, program.experiment.settings
    first = session.planned_step
    console = Console(settings.logdir, schedule.total_steps)
    if settings.log_device_placement:
        console.say(placement.table(program.train))
    recording = outer.enter_context(Recording(experiment, data, server, first, console))
    run = Run(first, settings, session, recording.writer, settings.logdir)
    select = None
    if settings.eval_in_chief:
        select = outer.enter_context(selection(experiment, first or -1, console.say)).take
    reporter = Reporter(
        experiment,
        schedule,
        first,
        run,
        console,
        evaluate=(
            (lambda: program.evaluate(session, "validation"))
            if program.can_evaluate("validation")
            else None
        ),
        save=lambda: _save(settings, supervisor, session),
        read_weights=lambda: _weights(session),
        select=select,
    )
    patience = settings.early_stopping_patience
    if patience is None and settings.eval_in_chief:
        patience = 0  # No other process evaluates, so none has the patience.
    reporter.request = early_stopping.standing(settings.logdir, first, patience)
    recording.start(schedule.total_steps, program.train.graph_def(), reporter.request)
    experiment.on_start(run)
    while _continues(session, schedule, stop, lambda: reporter.request is not None):
        values = draw(session, program.train, schedule.loop_size(session.planned_step))
        if values is None:
            break
        reporter.report(values)
    request = None
    if not schedule.is_over(session.planned_step) and not stop.requested:
        request = reporter.request
        early_stopping.announce(server)
    for values in session.drain():
        reporter.report(values)
    if request is not None:
        recording.ended_early(request, reporter.step)
    if schedule.total_steps is None and not stop.requested and not settings.eval_in_chief:
        reporter.evaluate()  # That these updates are the last ones was not known before.
    if reporter.step > first:
        recording.artifact(reporter.save())
    if stop.requested:
        recording.stopped()
        return None
    test = program.evaluate(session, "test") if program.can_evaluate("test") else {}
    test.pop("global_step", None)
    best = None
    if test:
        best = evaluate_best(
            session,
            current_runtime().variables(),
            settings.logdir,
            lambda: program.evaluate(session, "test"),
            console.say,
        )
    result = recording.finish(reporter.step, test, reporter.evaluated, best)
    experiment.on_end(replace(run, step=result.step), result)
    seconds = time.monotonic() - started
    for line in closing_lines(test, seconds, reporter.loss, experiment.loss_name):
        console.say(line)
    return result


# Makes updates on the next batches, at most a number of them; returns the values of the last, None
# at the end of the data.
Draw = Callable[[compat.Session, Any, int], "Mapping[str, float] | None"]


def _of_arrays(data: Data, settings: Any, trainer: int, skip: int) -> Draw:
    batches = inputs.batches(data, settings.batch_size, settings.seed, trainer)
    batches.skip(skip)
    return lambda session, step, number: session.run_many(step, batches.next(number))


def _of_stream(session: compat.Session, step: Any, number: int) -> Mapping[str, float] | None:
    try:
        return session.run_many(step, count=number)
    except tf1.errors.OutOfRangeError:
        return None


def _continues(
    session: compat.Session, schedule: Schedule, stop: Stop, ends_early: Callable[[], bool]
) -> bool:
    """Whether there are updates left to make, and nobody wants to end the run."""
    if schedule.is_over(session.planned_step):
        return False
    ending = session.any_worker(stop.requested or ends_early())
    # All know now that it ends, so they ask each other once more: whether because one was stopped.
    if ending and session.any_worker(stop.requested):
        stop.follow()
    return not ending


def make_schedule(settings: Any, data: Data, num_workers: int) -> Schedule:
    """Returns the course of a run.

    Raises:
      UserError: a batch is larger than the training set.
    """
    if data.streams:
        total = inputs.cardinality(data.train, num_workers)
        batches = None if total is None else max(1, total // num_workers)
    else:
        examples = inputs.examples(data.train)
        batches = examples // settings.batch_size
        if batches == 0:
            raise compat.UserError(
                f"--batch_size={settings.batch_size} is more than the {examples} training "
                "examples; give fewer"
            )
    ends = None if batches is None else settings.epochs * batches * num_workers
    modern = current_runtime().name == "modern"
    return Schedule(
        batches_per_epoch=batches,
        num_workers=num_workers,
        total_steps=settings.max_steps or ends,
        steps_per_loop=settings.steps_per_loop or (50 if modern else 1),
        log_every=settings.log_every,
        intervals=tuple(
            every
            for every in (settings.summary_every, settings.eval_every, settings.checkpoint_every)
            if every
        ),
    )


def _repeats(settings: Any, schedule: Schedule) -> int | None:
    """Returns the passes over a stream: without end where the number of updates ends the run."""
    return settings.epochs if schedule.total_steps is None else None


def selection(experiment: Any, resume_step: int, say: Callable[[str], object]) -> Selection:
    """Returns what chooses the best checkpoint of a run, and ends it where none gets better."""
    settings = experiment.settings
    return Selection(
        settings.logdir,
        experiment.monitor,
        experiment.mode,
        settings.early_stopping_patience or 0,
        resume_step,
        say,
    )


def _weights(session: compat.Session) -> dict[str, Any]:
    """Returns the trainable variables' values by name."""
    variables = current_runtime().variables()
    return session.read({name: v for name, v in variables.items() if v.trainable})


def _save(settings: Any, supervisor: compat.Supervisor, session: compat.Session) -> str:
    """Writes a checkpoint; returns its prefix.

    Raises:
      DivergedError: a variable is NaN or infinite, though the loss before the last update was not.
    """
    try:
        return supervisor.save(session)
    except compat.NotFiniteError as error:
        raise DivergedError(
            f"{error}; the last good checkpoint stays; "
            f"lower --learning_rate={settings.learning_rate:g}"
        ) from error
