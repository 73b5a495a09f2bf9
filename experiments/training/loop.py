"""The training loop: makes updates, and between them evaluates, records and saves in the chief."""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, ContextManager, Iterator, Mapping

import compat
from compat import tf1
from compat.runtime.device_setter import imbalance
from compat.runtime.interface import Runtime
from compat.runtime.session import Interrupted
from compat.tracking import Console, closing_lines
from experiments.evaluation import early_stopping
from experiments.evaluation.evaluate import Values, evaluate_best, write_at_end, write_pictures
from experiments.evaluation.selection import ChiefSelection, Selection
from experiments.launching import devices
from experiments.launching.signals import Stop
from experiments.training import agreement, inputs
from experiments.training.experiment import Experiment
from experiments.training.inputs import Data
from experiments.training.program import Program, build, first_values, schedule_of
from experiments.training.recording import completion, seen
from experiments.training.recording.model_table import as_markdown, bytes_of, model_table
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
from experiments.training.recording.tally import Tally, tally_of


def train(
    experiment: Any, runtime: Runtime, server: compat.Server | None, data: Data, stop: Stop
) -> Result | None:
    """Trains as the chief or another worker; returns the result if this is the chief.

    The result is None if the run was stopped before it was complete.
    """
    settings = experiment.settings
    chief = server is None or server.is_chief
    together = server is None or settings.sync or server.synchronous
    num_workers = 1 if server is None or together else server.num_workers
    runtime.meet()  # Before TensorFlow traces a stream's functions.
    schedule = schedule_of(settings, runtime, data, server)
    tally = tally_of(server, settings.batch_size)
    program = build(experiment, runtime, data, server, schedule, tally.batches)
    mine = agreement.fingerprint(settings, data, runtime.variables().values())
    if server is not None and chief:
        server.wait_for_peers(everybody=together)
    supervisor = compat.Supervisor(
        is_chief=chief,
        logdir=settings.logdir,
        summary_op=None,
        summary_writer=None,  # The recording has one, and only one may write to a folder.
        save_summaries_secs=0,
        save_model_secs=0,
        sync_optimizer=program.sync_optimizer,
        init_fn=first_values(settings, runtime) if chief else None,
    )
    with contextlib.ExitStack() as outer, contextlib.ExitStack() as end, supervisor.managed_session(
        server.target if server else "", devices.session_config(settings)
    ) as session, stop.deferred(
        lambda error: server.diagnose(error) if server else None, is_last=True
    ), contextlib.ExitStack() as inner:
        if server is not None:
            end.callback(server.announce_end)  # Right after the only session of this process.
        # Synchronous workers, for each of which a coordinator makes a call with another batch.
        coordinates = runtime.has_coordinator
        replicas = server.num_workers if server and settings.sync and coordinates else 1
        resumes = agreement.resume(settings, server, session.planned_step, tally, mine)
        ends = schedule.total_steps is None  # The run ends when each worker has used its data.
        batches = None
        if data.streams:
            if ends and tally.own is not None:
                program.go_on(session, tally.batches(tally.workers.index(tally.own)))
        else:
            trainer = server.trainer_index if server else 0
            number = inputs.examples(data.train)
            limit = settings.epochs * (number // settings.batch_size) if ends else None
            batches = inputs.Batched(number, settings, range(trainer, trainer + replicas), limit)
            used = session.planned_step // (1 if coordinates else num_workers)
            if not coordinates and not together and resumes:
                used = tally.batches(trainer)
            batches.skip(used)
        session.on_updates, session.last_step = tally.add, schedule.last_step
        if server is not None and not together:
            inner.callback(tally.record, settings.logdir)
        training = _Training(
            program, server, schedule, supervisor, session, batches, replicas, stop, tally, resumes
        )
        if not together or server is None:  # Workers that update together cannot leave out a call.
            session.is_overdue = stop.is_overdue
        if server is not None and not chief:
            with system_metrics(settings, server.task):
                training.run_as_worker(server)
            return None
        # `outer` closes the record last, after the other tasks were told that the run is over.
        return training.run_as_chief(outer, mine)


# Larger checkpoints are not written for each evaluation, unless --eval_in_chief asks for it.
_SMALL_BYTES = 100_000_000


@dataclass(frozen=True)
class _Training:
    """The objects with which a task trains, and the loops of the chief and of another worker."""

    program: Program
    server: compat.Server | None
    schedule: Schedule
    supervisor: compat.Supervisor
    session: compat.Session
    batches: inputs.Batched | None
    replicas: int  # The number of calls of the step that make one update.
    stop: Stop
    tally: Tally
    resumes: bool  # Whether it is known which data were used before.

    def run_as_worker(self, server: compat.Server) -> None:
        end = agreement.EarlyEnd(server, self.tally)
        with contextlib.suppress(Interrupted):
            for values in self._updates(lambda: end.poll(self.session.planned_step)):
                check_finite(values, self.program.experiment.settings.learning_rate)
        # Another call reports a lost server when it needs the server.
        with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
            agreement.announce_seen(server, self.tally)

    def run_as_chief(self, outer: contextlib.ExitStack, mine: dict[str, str]) -> Result | None:
        started = time.monotonic()
        program, session, schedule = self.program, self.session, self.schedule
        experiment, settings = program.experiment, program.experiment.settings
        first = session.planned_step
        console = Console(settings.logdir, schedule.last_step)
        if settings.log_device_placement:
            console.say(program.placement())
        warning = imbalance(program.stored() or [0])
        if warning:
            console.say(warning)
        recording = Recording(
            experiment, program.runtime.name, program.data, self.server, first, console
        )
        outer.enter_context(recording)
        outer.enter_context(system_metrics(settings, self.server.task if self.server else None))
        run = Run(first, settings, session, recording.writer, settings.logdir)
        patience = settings.early_stopping_patience
        if settings.eval_in_chief:
            patience = patience or 0  # No other process evaluates, or has a patience.
        measure = None
        if "validation" in program.evaluations:
            measure = functools.partial(program.evaluate, session, "validation")
        variables = program.runtime.variables().items()
        weights = {n: v for n, v in variables if v.trainable and has_histogram(v)}
        reporter = Reporter(
            experiment,
            schedule,
            run,
            console,
            program.callbacks,
            measure=measure,
            metrics=program.metrics,
            write_checkpoint=self._save,
            read_weights=functools.partial(session.read, weights),
            select=self._select(outer, first or -1, console.say),
        )
        session.on_build = functools.partial(_announce_call, session, console.say)
        reporter.request = early_stopping.standing(settings.logdir, first, patience)
        goes_on = self.resumes and schedule.total_steps is None
        graph_def = program.train.graph_def()
        recording.start(schedule.last_step, graph_def, reporter.request, goes_on)
        if first == 0:
            table = as_markdown(model_table(program.runtime.variables()))
            recording.writer.texts(first, {"model": table})
        if self.server is not None:
            # Workers wait for this, so that the record of the run exists when they end: else they
            # would not add their numbers to it.
            agreement.publish(self.server, mine)
        program.callbacks.on_start(run)
        reporter.read_request()
        reporter.say_interval()
        with Profile(settings, console.say) as profile, contextlib.suppress(Interrupted):
            for values in self._updates(
                lambda: reporter.request is not None, reporter.saves, profile.call
            ):
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

    def _select(
        self, outer: contextlib.ExitStack, first: int, say: Callable[[str], object]
    ) -> Callable[..., None] | None:
        """Returns a function that receives the chief's evaluations and keeps the best checkpoint.

        It is None if another process does this, or no process. If --eval_in_chief is not given, the
        chief does it unless its checkpoints are large.
        """
        program, settings = self.program, self.program.experiment.settings
        chosen = settings.eval_in_chief
        if "validation" not in program.evaluations or chosen is False or settings.evaluator:
            return None
        if chosen:
            return outer.enter_context(selection(program.experiment, first, say)).take
        size = sum(map(bytes_of, program.runtime.variables().values()))
        if size > _SMALL_BYTES and not settings.early_stopping_patience:
            say(
                f"the best checkpoint is not kept, since each takes {size / 1e6:,.0f} MB; "
                "--eval_in_chief keeps it, or --evaluator in a process beside a cluster"
            )
            return None
        return ChiefSelection(
            functools.partial(selection, program.experiment, say=say), first, say
        ).take

    def _end(  # noqa: C901
        self, reporter: Reporter, recording: Recording, request: Any, started: float
    ) -> Result | None:
        """Writes the last checkpoint and, if the run is complete, evaluates the test split."""
        program, session, schedule, run = self.program, self.session, self.schedule, reporter.run
        experiment, settings, first = program.experiment, run.settings, run.step
        reached = self._follow_others(reporter.console.say, reporter.step, request is not None)
        if request is not None:
            recording.ended_early(request, reporter.step)
        elif first == reached and self.resumes and schedule.total_steps is None:
            reporter.console.say(completion.message(settings.logdir, first))
        elif first == reached and not (schedule.is_over(first) or self.stop.requested):
            raise compat.UserError(
                "the training stream has no batch for worker 0: a pattern of its files matches "
                "none, or they have fewer examples than a batch, such as "
                f"--batch_size={settings.batch_size}; give more of them"
            )
        if schedule.total_steps is None and not self.stop.requested and reporter.select is None:
            reporter.evaluate()  # It was not known before that these are the last updates.
        if reached > first:
            asked, session.is_overdue = session.is_overdue, None  # Saving must not be interrupted.
            prefix = self._save()
            session.is_overdue = asked
            recording.artifact(prefix)
            if reporter.select is not None and reporter.evaluated_step < reached:
                reporter.evaluate(prefix)
        if self.stop.requested:
            raise Interrupted
        loss_name = experiment.loss_name
        test: Values = {}
        best: Values = {}
        metrics: Values = {}
        if "test" in program.evaluations:
            evaluate = functools.partial(program.evaluate, session, "test")
            test = evaluate()
            if reached > first:
                write_pictures(program.metrics, run.writer, reporter.step, "test")
        # The metrics hold the test split or, without one, the validation split.
        write_at_end(program.metrics, run.writer)
        if test:
            best = evaluate_best(
                session, program.runtime, settings.logdir, evaluate, reporter.console.say
            )
            metrics = {**named("test", test, loss_name), **named("best_test", best, loss_name)}
        used = self.tally.examples()
        result = recording.finish(reached, reporter.evaluated, metrics, used)
        program.callbacks.on_end(replace(run, step=result.step), result)
        seconds = time.monotonic() - started
        tests = _by_weights(test, best, reached)
        for line in closing_lines(tests, seconds, reporter.losses(), loss_name):
            reporter.console.say(line)
        return result

    def _updates(
        self,
        ends_early: Callable[[], bool],
        saves: Callable[[int, int], bool] = lambda before, after: False,
        around: Callable[[int], ContextManager[Any]] = contextlib.nullcontext,
    ) -> Iterator[Mapping[str, float]]:
        """Makes updates until the run or its data end; yields the values after each call.

        A call makes several updates; its values are those of the last one. A coordinator schedules
        updates ahead of those that are yielded, but none behind one after which a checkpoint is
        due. So checkpoints and their evaluations are of the steps at which they are due, which
        costs nothing: a checkpoint waits for all updates that are scheduled.

        Args:
          ends_early: whether the run is to end before its last step.
          saves: whether a checkpoint is due between two global steps.
          around: is given the global step before a call, and returns a context for it.
        """
        session, step, stop = self.session, self.program.train, self.stop
        while not self.schedule.is_over(session.planned_step):
            ending = session.any_worker(stop.requested or ends_early())
            # All workers know that the run ends here; if one of them was asked to stop, all stop.
            if ending and session.any_worker(stop.requested):
                stop.follow()
            if ending:
                return
            before = session.planned_step
            number = self.schedule.loop_size(before)
            stacked, calls = [], number * self.replicas
            if self.batches is not None:
                stacked = [self.batches.next(number)]
                calls = len(stacked[0])
                if not calls:
                    return
            try:
                with around(before):
                    values = session.run_many(step, *stacked, count=calls)
            except tf1.errors.OutOfRangeError:
                return
            yield values
            if saves(before, session.planned_step):
                for values in session.drain():
                    yield values
                # The update of the last call need not be the last one.
                yield {**values, "global_step": session.planned_step}

    def _follow_others(self, say: Callable[[str], object], step: int, ended: bool) -> int:
        """Waits for asynchronous workers that still make updates; returns the global step."""
        settings, schedule = self.program.experiment.settings, self.schedule
        if self.stop.requested or self.server is None or self.server.departures is None:
            return max(step, self.session.planned_step)
        ends = schedule.total_steps is None and not ended
        more = {"absent_secs": settings.rendezvous_timeout} if ends else {}
        self.supervisor.services.follow_others(say, lambda: self.stop.requested, **more)
        agreement.take_seen(self.server, self.tally)
        step = int(self.session.read({"step": self.supervisor.global_step})["step"])
        if ends and not self.stop.requested and step < (schedule.last_step or 0):
            say(
                f"the run ends at step {step} of {schedule.last_step}: a worker was lost, or did "
                "not start, and the rest of its data was not used"
            )
        return step

    def _save(self) -> str:
        """Writes a checkpoint, unless a variable is NaN or infinite; returns its prefix."""
        try:
            self.session.settle()  # Then a coordinator has counted all data that it has used.
            agreement.take_seen(self.server, self.tally)
            # Read before the variables: a resumed run may use a batch again, but leaves none out.
            used = self.tally.seen()
            prefix = self.supervisor.save(self.session)
            seen.write(self.program.experiment.settings.logdir, prefix, used)
            return prefix
        except compat.NotFiniteError as error:
            raise DivergedError(
                f"{error}; the last good checkpoint stays; "
                f"lower --learning_rate={self.program.experiment.settings.learning_rate:g}"
            ) from error


def _announce_call(
    session: compat.Session, say: Callable[[str], object], size: int, secs: float
) -> None:
    """Logs that calls now have `size` steps; building the first takes about `secs` seconds."""
    say(
        f"from step {session.planned_step} on, calls of {size} steps; building the first one takes "
        f"about {secs:.1f} s"
    )


def _by_weights(last: Values, best: Values, step: int) -> dict[str, Values]:
    """Returns the test values of the best and of the last checkpoint, by a title for each."""
    chosen = int(best.get("global_step", -1))
    if not best:
        found = {"": last}
    elif chosen < step:
        found = {f"best, step {chosen}": best, f"last, step {step}": last}
    else:
        found = {f"best and last, step {chosen}": best}
    return {
        name: {measure: v for measure, v in values.items() if measure != "global_step"}
        for name, values in found.items()
        if values
    }


def selection(experiment: Any, resume_step: int, say: Callable[[str], object]) -> Selection:
    """Returns the `Selection` of a run, which keeps the best checkpoint and may stop it early."""
    settings = experiment.settings
    patience = settings.early_stopping_patience or 0
    monitor, mode = experiment.monitor, experiment.mode
    if monitor == Experiment.monitor:  # The default stands for the loss, which may have a name.
        monitor = f"validation/{experiment.loss_name}"
    return Selection(settings.logdir, monitor, mode, patience, resume_step, say)
