"""The supervisor: starts, restores, records and ends a run."""

from __future__ import annotations

import collections
import contextlib
import os
from typing import Any, Callable, Iterator

from compat._tensorflow import private, tf1
from compat.checkpoint.io import BASENAME, CheckpointIO
from compat.cluster.liveness import run_state, watchdog
from compat.cluster.liveness.coordination import Coordinated, reported
from compat.cluster.liveness.departures import REPLICAS_GRACE_SECS, updates_together
from compat.errors import UserError
from compat.runtime.interface import current_runtime
from compat.runtime.run import Run
from compat.runtime.services import Services
from compat.runtime.session import Session


class Supervisor(Run, Coordinated):
    """A `tf.compat.v1.train.Supervisor` that records without threads and waits for shorter times.

    The standard services have no threads: a training call writes the summaries and checkpoints that
    are due. So a `summary_op` may need placeholders, and no hidden call takes elements from a
    queue. A training call is one that updates the global step or, in a program without one, a
    trainable variable.
    Waiting tasks try again after a second, not after thirty. Leaving `managed_session` without an
    error saves a last checkpoint; before that, the chief waits until the other trainers have made
    their updates, except lost ones. If there are others, `stop` also waits, and saves the updates
    that no checkpoint has yet. Only the chief reads and writes checkpoints. It refuses to save NaN
    or infinity in a trainable variable, and locks the log folder until `stop`.

    All else, other attributes included, is TensorFlow's own on either runtime. In a cluster with a
    coordinator, the program of the chief schedules its steps on all workers.

    Args (those that differ; the others are TensorFlow's):
      summary_op: a merged summary, or a `Step`, whose values are written as scalars; by default
        the `tf1.summary` operations of the step, else those that the graph has collected, else the
        values of each step.
      saver: a `compat.Saver` or a `tf.compat.v1.train.Saver`.
      sync_optimizer: a `SyncReplicasOptimizer`, whose queue runner and tokens the chief starts,
        where each worker runs its own program.

    Raises:
      UserError: `sync_optimizer` is given in a cluster with a coordinator; or the log folder is in
        use, holds a checkpoint of another model, or holds checkpoints that its file `checkpoint`
        does not name.
    """

    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = Run.USE_DEFAULT,
        ready_for_local_init_op: Any = Run.USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = Run.USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = Run.USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = Run.USE_DEFAULT,
        saver: Any = Run.USE_DEFAULT,
        global_step: Any = Run.USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 1,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = BASENAME,
        session_manager: Any = None,
        summary_writer: Any = Run.USE_DEFAULT,
        init_fn: Callable[[Any], None] | None = None,
        local_init_run_options: Any = None,
        *,
        sync_optimizer: Any = None,
    ) -> None:
        self.runtime = current_runtime()
        self.is_chief = is_chief
        self.logdir = logdir if is_chief else None
        self.save_path = os.path.join(logdir, checkpoint_basename) if is_chief and logdir else None
        self.save_summaries_secs = save_summaries_secs if self.logdir else 0
        self.recovery_wait_secs = recovery_wait_secs
        self.stop_grace_secs = stop_grace_secs
        self.max_wait_secs = 7200
        self.sync_optimizer = sync_optimizer
        self.init_fn = init_fn
        self.graph = graph or tf1.get_default_graph()
        self.summary_op = summary_op
        self._writer = summary_writer
        self.own = None
        # Arguments for graphs and sessions only; the legacy runtime passes them to TensorFlow's.
        arguments = {
            "ready_op": ready_op,
            "ready_for_local_init_op": ready_for_local_init_op,
            "init_op": init_op,
            "init_feed_dict": init_feed_dict,
            "local_init_op": local_init_op,
            "session_manager": session_manager,
            "local_init_run_options": local_init_run_options,
            "summary_writer": summary_writer,
        }
        self.graph_arguments = {k: v for k, v in arguments.items() if v is not self.USE_DEFAULT}
        with contextlib.ExitStack() as contexts:
            # It adds operations for all tasks, so a surrounding `tf.device` must not place them.
            contexts.enter_context(self.graph.as_default())
            contexts.enter_context(self.graph.device(None))
            self.global_step = (
                self.runtime.global_step() if global_step is self.USE_DEFAULT else global_step
            )
            self.saver = self.runtime.default_saver() if saver is self.USE_DEFAULT else saver
            self.save_model_secs = save_model_secs if self.logdir and self.saver else 0
            folder = self.logdir if self.saver else None
            self.recovery = CheckpointIO(folder, self.saver, checkpoint_basename)
            if self.save_model_secs:  # Otherwise it may read the folder of a run in progress.
                self.recovery.hold()
            self.runtime.finish_building(self)
        self.coord = self.own.coord
        self.services = Services(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "own" or self.own is None:
            raise AttributeError(f"a supervisor has no attribute {name!r} on this runtime")
        return getattr(self.own, name)

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """Opens a session, and stops all threads and services when the body ends.

        `tf.errors.OutOfRangeError`, the end of the input, and `sys.exit(0)` end the body without an
        error. The end of the session does not end the run: tasks that serve others, such as
        parameter servers, serve until this process exits. So the program may open another session.
        """
        session, exiting = None, run_state.SuccessfulExit()
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            with contextlib.suppress(tf1.errors.OutOfRangeError), exiting:
                try:
                    yield session
                finally:
                    # The body may have missed the error of a thread, or may fail because of it.
                    self.coord.raise_requested_exception()
            collections.deque(session.drain(), maxlen=0)
            if self.services.part is not None:
                self.request_stop()  # Else threads would train on while the chief waits for others.
            saves = self.is_chief and self.save_model_secs and start_standard_services
            if saves or not self.is_chief:
                self.services.follow_others()
            if saves:
                self.save(session)
            session.leave()
        except BaseException as error:
            self.runtime.ended_by(error)
            self.services.part = None  # Others are not waited for.
            self.request_stop(error if isinstance(error, Exception) else None)
            if session is not None:
                session.close()
            with contextlib.suppress(Exception):  # The first error is the one to report.
                self.stop(close_summary_writer=close_summary_writer)
            raise
        try:
            # Before the session closes, so that the threads can do their last work in it.
            self.stop(close_summary_writer=close_summary_writer)
        finally:
            session.close()
        exiting.resume()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """Returns a session whose variables have values.

        In a task that serves, such as a parameter server, this blocks until the run is over. Then
        `should_stop` is true, and the program should exit.
        """
        self.coord.clear_stop()
        self.max_wait_secs = max_wait_secs
        try:
            return self._prepare(master, config, wait_for_checkpoint, start_standard_services)
        except BaseException as error:
            self.runtime.ended_by(error)
            raise

    def _prepare(self, master: str, config: Any, wait: bool, start_services: bool) -> Any:
        self.runtime.before_session()
        server = self.runtime.server_at(master)
        serves = server is not None and server.serves
        if server is not None and serves:
            server.join()
        if self.save_model_secs:
            self.recovery.hold()  # `stop` has released the folder.
        if self.logdir and wait:
            self.recovery.wait(self.max_wait_secs, self.recovery_wait_secs)
        if self.is_chief and self.summary_writer:
            self.summary_writer.reopen()
        session = self.runtime.open_session(self, master, config)
        self.services.take_part(session, server)
        if serves:
            self.request_stop()
            return session
        if server is not None:
            server.begin()
        try:
            if start_services and self.is_chief:
                self.start_standard_services(session)
            if start_services:
                self.start_queue_runners(session)
        except BaseException:
            session.close()
            raise
        return session

    def start_standard_services(self, sess: Any) -> list[Any]:
        """Starts summaries, steps per second and checkpoints; returns no threads.

        Raises:
          UserError: the task is not the chief.
        """
        if not self.is_chief:
            raise UserError("only the chief can start standard services; check is_chief before")
        if self.logdir:
            self.services.start(sess)
        return []

    def save(self, session: Session) -> str:
        """Writes a checkpoint to the log folder now; returns its prefix.

        Raises:
          UserError: there is no log folder to write to, or no saver.
          NotFiniteError: a trainable variable has NaN or infinity in it; nothing is written.
        """
        if self.save_path is None or self.saver is None:
            raise UserError(
                "save() needs a log folder and a saver; pass logdir= to the supervisor, and not "
                "saver=None"
            )
        self.recovery.hold()
        return self.services.save(session)

    def stop(
        self,
        threads: Any = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = True,
    ) -> None:
        """Stops the threads, and closes the summary writer.

        Threads that still run after `stop_grace_secs` are ignored, unless `ignore_live_threads` is
        false; TensorFlow raises an error by default. Threads of synchronous replicas, which may
        wait for gradients that nobody sends any more, have two seconds.

        Raises:
          Exception: the error that a thread passed to `request_stop`.
        """
        self.request_stop()
        self.services.stop()
        patience = self.stop_grace_secs
        if updates_together(self.graph):
            patience = min(patience, REPLICAS_GRACE_SECS)
        if watchdog.is_stuck():  # Threads in a call that was left behind do not end.
            patience = 0
        try:
            with reported(f"waiting up to {patience:g} s for the threads of the program to stop"):
                self.coord.join(
                    threads,
                    stop_grace_period_secs=patience,
                    ignore_live_threads=ignore_live_threads,
                )
        except BaseException as error:
            self.runtime.ended_by(error)
            raise
        finally:
            if close_summary_writer and self._writer not in (None, self.USE_DEFAULT):
                self._writer.add_session_log(tf1.SessionLog(status=tf1.SessionLog.STOP))
                self._writer.close()
                private.forget_graph(self.own)  # The next event file gets the graph again.
            self.recovery.close()

    StartStandardServices = start_standard_services
    PrepareSession = prepare_or_wait_for_session
    Stop = stop
