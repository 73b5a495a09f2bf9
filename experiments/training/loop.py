"""The training loop: updates, and what is due between them, in the chief and in other workers."""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, ContextManager, Iterator, Mapping

import compat
from compat import tf1
from compat.runtime.interface import current_runtime
from compat.runtime.placement import imbalance
from compat.runtime.session import Interrupted
from compat.tracking import Console, closing_lines
from experiments.evaluation import early_stopping
from experiments.evaluation.evaluate import Values, evaluate_best, write_at_end, write_pictures
from experiments.evaluation.selection import Selection
from experiments.launching.signals import Stop
from experiments.training import agreement, devices, inputs
from experiments.training.inputs import Data
from experiments.training.program import Program, build, first_values
from experiments.training.recording.profile import Profile
from experiments.training.recording.recording import Recording, system_metrics
from experiments.training.recording.report import (
    DivergedError,
    Reporter,
    check_finite,
    has_histogram,
    named,
)
from experiments.training.recording.run import Result, Run
from experiments.training.recording.schedule import Schedule
from experiments.training.recording.tally import Tally


def train(experiment: Any, server: compat.Server | None, data: Data, stop: Stop) -> Result | None:
    """Trains as chief or other worker; returns what the chief of a complete run has reached."""
    settings = experiment.settings
    chief = server is None or server.is_chief
    together = server is None or settings.sync or server.synchronous
    num_workers = 1 if server is None or together else server.num_workers
    schedule = _schedule(settings, data, num_workers)
    program = build(experiment, data, server, schedule)
    mine = agreement.fingerprint(settings, data, current_runtime().variables().values())
    if server is not None and chief:
        server.wait_for_peers(everybody=together)
    supervisor = compat.Supervisor(
        is_chief=chief,
        logdir=settings.logdir,
        summary_op=None,
        summary_writer=None,  # The recording has one; no more than one writes to a folder.
        save_summaries_secs=0,
        save_model_secs=0,
        sync_optimizer=program.sync_optimizer,
        init_fn=first_values(settings) if chief else None,
    )
    with contextlib.ExitStack() as outer, supervisor.managed_session(
        server.target if server else "", devices.session_config(settings)
    ) as session, stop.deferred(
        lambda error: server.diagnose(error) if server else None, is_last=True
    ), contextlib.ExitStack() as inner:
        modern = current_runtime().name == "modern"
        # Of which the modern runtime's coordinator makes the calls, each with a batch of its own.
        replicas = server.num_workers if server and settings.sync and modern else 1
        batches = None
        if not data.streams:
            trainer = server.trainer_index if server else 0
            number = inputs.examples(data.train)
            batches = inputs.Batched(number, settings, range(trainer, trainer + replicas))
            batches.skip(session.planned_step // (1 if modern else num_workers))
        tally = None
        if server is not None and not together:
            tally = Tally(server)
            session.on_updates = tally.add
            inner.callback(tally.record, settings.logdir)
        training = _Training(
            program, server, schedule, supervisor, session, batches, replicas, stop, tally
        )
        if not together or server is None:  # Else all have to make each call.
            session.is_overdue = stop.is_overdue
        if server is not None and not chief:
            agreement.check(server, mine, settings.rendezvous_timeout)
            with system_metrics(settings, server.task):
                training.run_as_worker(server)
            return None
        # The record is closed last, when the other tasks have been told that the run is over.
        return training.run_as_chief(outer, mine)


@dataclass(frozen=True)
class _Training:
    """What a task trains with."""

    program: Program
    server: compat.Server | None
    schedule: Schedule
    supervisor: compat.Supervisor
    session: compat.Session
    batches: inputs.Batched | None
    replicas: int  # Calls of the step that make one update.
    stop: Stop
    tally: Tally | None

    def run_as_worker(self, server: compat.Server) -> None:
        end = agreement.EarlyEnd(server)
        with contextlib.suppress(Interrupted):
            for values in self._updates(lambda: end.poll(self.session.planned_step)):
                check_finite(values, self.program.experiment.settings.learning_rate)

    def run_as_chief(self, outer: contextlib.ExitStack, mine: dict[str, str]) -> Result | None:
        started = time.monotonic()
        program, session, schedule = self.program, self.session, self.schedule
        experiment, settings = program.experiment, program.experiment.settings
        first = session.planned_step
        console = Console(settings.logdir, schedule.total_steps)
        if settings.log_device_placement:
            console.say(program.placement())
        warning = imbalance(program.stored() or [0])
        if warning:
            console.say(warning)
        recording = Recording(experiment, program.data, self.server, first, console)
        outer.enter_context(recording)
        outer.enter_context(system_metrics(settings, self.server.task if self.server else None))
        run = Run(first, settings, session, recording.writer, settings.logdir)
        select, patience = None, settings.early_stopping_patience
        if settings.eval_in_chief:
            select = outer.enter_context(selection(experiment, first or -1, console.say)).take
            patience = patience or 0  # No other process evaluates, so none has the patience.
        measure = None
        if "validation" in program.evaluations:
            measure = functools.partial(program.evaluate, session, "validation")
        variables = current_runtime().variables().items()
        weights = {n: v for n, v in variables if v.trainable and has_histogram(v)}
        reporter = Reporter(
            experiment,
            schedule,
            run,
            console,
            measure=measure,
            metrics=program.metrics,
            write_checkpoint=self._save,
            read_weights=functools.partial(session.read, weights),
            select=select,
        )
        reporter.request = early_stopping.standing(settings.logdir, first, patience)
        recording.start(schedule.total_steps, program.train.graph_def(), reporter.request)
        if self.server is not None:
            # Now: a worker that found no record of the run when it ends would leave no count in it.
            agreement.publish(self.server, mine)
        experiment.on_start(run)
        with Profile(settings, console.say) as profile, contextlib.suppress(Interrupted):
            for values in self._updates(lambda: reporter.request is not None, profile.call):
                reporter.report(values)
        request = None
        if not schedule.is_over(session.planned_step) and not self.stop.requested:
            request = reporter.request
            agreement.announce_early_end(self.server)
        with contextlib.suppress(Interrupted):
            for values in session.drain():
                reporter.report(values)
        with contextlib.suppress(Interrupted):
            return self._end(reporter, recording, request, started)
        recording.stopped()
        return None

    def _end(
        self, reporter: Reporter, recording: Recording, request: Any, started: float
    ) -> Result | None:
        """Saves what was reached and, if the run is complete, tests it."""
        program, session, schedule, run = self.program, self.session, self.schedule, reporter.run
        experiment, settings, first = program.experiment, run.settings, run.step
        if request is not None:
            recording.ended_early(request, reporter.step)
        elif first == max(reporter.step, session.planned_step) and not (
            schedule.is_over(first) or self.stop.requested
        ):
            raise compat.UserError(
                f"the training data have no batch of --batch_size={settings.batch_size} for worker "
                "0; give more examples or files, or a smaller batch"
            )
        if schedule.total_steps is None and not self.stop.requested and reporter.select is None:
            reporter.evaluate()  # That these updates are the last ones was not known before.
        if max(reporter.step, session.planned_step) > first:
            asked, session.is_overdue = session.is_overdue, None  # Nothing is as due as this.
            prefix = self._save()
            session.is_overdue = asked
            recording.artifact(prefix)
            if reporter.select is not None:
                reporter.evaluate(prefix)
        if self.stop.requested:
            raise Interrupted
        loss_name = experiment.loss_name
        test: Values = {}
        metrics: Values = {}
        if "test" in program.evaluations:
            evaluate = functools.partial(program.evaluate, session, "test")
            test = evaluate()
            if reporter.step > first:
                write_pictures(program.metrics, run.writer, reporter.step, "test")
        write_at_end(program.metrics, run.writer)  # Of the test or, without one, the validation.
        if test:
            best = evaluate_best(session, settings.logdir, evaluate, reporter.console.say)
            metrics = {**named("test", test, loss_name), **named("best_test", best, loss_name)}
        test.pop("global_step", None)
        result = recording.finish(reporter.step, reporter.evaluated, metrics)
        experiment.on_end(replace(run, step=result.step), result)
        seconds = time.monotonic() - started
        for line in closing_lines(test, seconds, reporter.loss, loss_name):
            reporter.console.say(line)
        return result

    def _updates(
        self,
        ends_early: Callable[[], bool],
        around: Callable[[int], ContextManager[Any]] = contextlib.nullcontext,
    ) -> Iterator[Mapping[str, float]]:
        """Makes updates until the run or its data end; yields values of the last of each loop.

        `around` opens a context for each loop, which it is given the first step of.
        """
        session, step, stop = self.session, self.program.train, self.stop
        while not self.schedule.is_over(session.planned_step):
            ending = session.any_worker(stop.requested or ends_early())
            # All know now that it ends, so they ask each other whether because one was stopped.
            if ending and session.any_worker(stop.requested):
                stop.follow()
            if ending:
                return
            number = self.schedule.loop_size(session.planned_step)
            stacked, calls = [], number * self.replicas
            if self.batches is not None:
                stacked = [self.batches.next(number)]
                calls = len(stacked[0])
            try:
                with around(session.planned_step):
                    values = session.run_many(step, *stacked, count=calls)
            except tf1.errors.OutOfRangeError:
                return
            if self.tally is not None:
                period = self.program.experiment.settings.communication_period
                self.tally.add(None, calls * period, values)
            yield values

    def _save(self) -> str:
        """Writes a checkpoint, unless a variable is NaN or infinite; returns its prefix."""
        try:
            return self.supervisor.save(self.session)
        except compat.NotFiniteError as error:
            raise DivergedError(
                f"{error}; the last good checkpoint stays; "
                f"lower --learning_rate={self.program.experiment.settings.learning_rate:g}"
            ) from error


def _schedule(settings: Any, data: Data, num_workers: int) -> Schedule:
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
    total_steps = settings.max_steps or ends
    if total_steps is not None and (settings.profiled or (0, 0))[0] >= total_steps:
        raise compat.UserError(
            f"--profile_steps={settings.profile_steps} begins when the run has ended, at step "
            f"{total_steps}; give earlier steps"
        )
    modern = current_runtime().name == "modern"
    # A backup replica would wait, in a loop of several, for updates that no other makes any more.
    most = 50 if modern else 1 if settings.replicas_to_aggregate else 20
    # Whole periods: else loops of several sizes take turns, each of which is traced and optimized.
    period = settings.communication_period
    steps_per_loop = max(period, most - most % period)
    intervals = (settings.summary_every, settings.eval_every, settings.checkpoint_every)
    return Schedule(
        batches_per_epoch=batches,
        num_workers=num_workers,
        total_steps=total_steps,
        steps_per_loop=settings.steps_per_loop or steps_per_loop,
        log_every=settings.log_every,
        intervals=tuple(every for every in intervals if every),
        stops=settings.profiled or (),
        num_loops=1 if modern else num_workers,
    )


def selection(experiment: Any, resume_step: int, say: Callable[[str], object]) -> Selection:
    """Returns what chooses the best checkpoint of a run, and ends it where none gets better."""
    settings = experiment.settings
    patience = settings.early_stopping_patience or 0
    monitor, mode = experiment.monitor, experiment.mode
    return Selection(settings.logdir, monitor, mode, patience, resume_step, say)
