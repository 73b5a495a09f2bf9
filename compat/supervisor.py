"""The supervisor: start, restore, summaries, checkpoints and the end of a training."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from compat._tensorflow import tf1
from compat.checkpoint import files
from compat.errors import UserError
from compat.liveness import watchdog
from compat.runtime.interface import current_runtime
from compat.runtime.session import Session, Values


class Supervisor:
    """Differs from `tf.compat.v1.train.Supervisor` in what its author's users asked for.

    Summaries and checkpoints are made in the training call and not on threads of their own: so
    a `summary_op` may need placeholders, and no hidden call takes elements from a queue. Waiting
    tasks try again after a second, not after thirty. Leaving the session without an error saves
    a last checkpoint. On the modern runtime the same program drives a `ClusterCoordinator`;
    arguments that speak of graphs and operations (`graph`, `ready_op`, `init_op`, ...) have no
    meaning there and are passed over, since variables have their values when they are made.

    Args (those that differ; the others are TensorFlow's):
      summary_op: a merged summary of the legacy runtime, or a `Step`, whose values are written as
        scalars; by default what the graph has collected, else the values of each step.
      saver: a `compat.Saver`, or None for no checkpoints.
      sync_optimizer: a `SyncReplicasOptimizer`, whose queue runner and tokens the chief starts;
        legacy runtime only.

    Raises:
      UserError: `sync_optimizer` on the modern runtime, or the log folder holds a checkpoint of
        another model.
    """

    USE_DEFAULT = object()

    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 1,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], None] | None = None,
        local_init_run_options: Any = None,
        *,
        sync_optimizer: Any = None,
    ) -> None:
        self.runtime = current_runtime()
        self.is_chief = is_chief
        self.logdir = logdir
        self.save_path = str(Path(logdir) / checkpoint_basename) if logdir else None
        self.save_summaries_secs = save_summaries_secs if logdir else 0
        self.stop_grace_secs = stop_grace_secs
        self.sync_optimizer = sync_optimizer
        self.init_fn = init_fn
        self.global_step = (
            self.runtime.create_global_step() if global_step is self.USE_DEFAULT else global_step
        )
        self.saver = files.Saver() if saver is self.USE_DEFAULT else saver
        self.save_model_secs = save_model_secs if logdir and self.saver else 0
        self.summary_op = summary_op
        self._writer = summary_writer
        self.coord = tf1.train.Coordinator()
        # What only graphs and sessions know; the legacy runtime hands it on to TensorFlow's own.
        given = {
            "graph": graph,
            "ready_op": ready_op,
            "ready_for_local_init_op": ready_for_local_init_op,
            "init_op": init_op,
            "init_feed_dict": init_feed_dict,
            "local_init_op": local_init_op,
            "session_manager": session_manager,
            "recovery_wait_secs": recovery_wait_secs,
            "local_init_run_options": local_init_run_options,
        }
        self.graph_arguments = {k: v for k, v in given.items() if v is not self.USE_DEFAULT}
        self._last_summary = self._last_save = time.monotonic()
        self._restored, self._summaries_written = False, 0
        self.runtime.finish_building(self)

    @property
    def summary_writer(self) -> Any:
        """The chief's `FileWriter` in the log folder, made when first asked for, else None."""
        if self._writer is self.USE_DEFAULT:
            self._writer = None
            if self.is_chief and self.logdir:
                # In a graph of its own: the class refuses to be made in eager mode.
                with tf1.Graph().as_default():
                    self._writer = tf1.summary.FileWriter(self.logdir)
        return self._writer

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """Opens a session, and stops everything when the body is left, as TensorFlow's does."""
        session = self.prepare_or_wait_for_session(
            master, config, start_standard_services=start_standard_services
        )
        try:
            yield session
            for _ in session.drain():
                pass
            if self.is_chief and self.save_model_secs:
                self.save(session)
            session.leave()
        except BaseException as error:
            if self.runtime.server is not None:
                self.runtime.server.ends_by(error)
            self.request_stop(error if isinstance(error, Exception) else None)
            session.close()
            with contextlib.suppress(Exception):  # The first error is the one to report.
                self.stop(close_summary_writer=close_summary_writer)
            raise
        # First asked, then cut off: a queue runner that waits for gradients ends without an error.
        self.request_stop()
        session.close()
        self.stop(close_summary_writer=close_summary_writer)

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """Returns a session whose variables are initialised, or restored from the log folder.

        A worker that only serves on this runtime does so here; then `should_stop()` is true.
        """
        del wait_for_checkpoint, max_wait_secs, start_standard_services
        server = self.runtime.server
        if server is not None and server.serves:
            server.join()
            self.request_stop()
        session = self.runtime.open_session(self, master, config)
        if self.init_fn is not None and self.is_chief and not self._restored:
            self.init_fn(session)
        return session

    def restored_values(self) -> Any:
        """Returns the newest whole checkpoint's values by name, or None if there is none at all."""
        if not (self.is_chief and self.logdir and self.saver):
            return None
        prefixes = files.history(self.logdir)
        if not prefixes:
            return None
        self._restored = True
        return self.saver.recover(prefixes)

    def after_training_call(self, session: Session, values: Values | None) -> None:
        """Writes what is due; sessions call it after every call that trains.

        Args:
          session: the one that was called.
          values: the values of a step, or None after a call of another kind.
        """
        now = time.monotonic()
        if not self.is_chief:
            return
        if values is not None and self.summary_due() and self.summary_op is not None:
            self._last_summary = now
            step = int(values.get("global_step", session.planned_step))
            scalars = {name: value for name, value in values.items() if name != "global_step"}
            self.summary_computed(session, scalars, step)
        if self.save_model_secs and now - self._last_save >= self.save_model_secs:
            self.save(session)

    def summary_due(self) -> bool:
        """Whether the next training call is to write a summary; the first one is."""
        if not (self.is_chief and self.save_summaries_secs and self.summary_writer):
            return False
        first = self._summaries_written == 0
        return first or time.monotonic() - self._last_summary >= self.save_summaries_secs

    def summary_computed(self, sess: Any, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary: a `Summary`, its serialized bytes, or a dict of scalars by name.

        Raises:
          UserError: there is no log folder to write to.
        """
        if self.summary_writer is None:
            raise UserError("summary_computed() needs a log folder; pass logdir= to the chief")
        if isinstance(summary, dict):
            summary = tf1.Summary(
                value=[
                    tf1.Summary.Value(tag=name, simple_value=value)
                    for name, value in summary.items()
                ]
            )
        if global_step is None and self.global_step is not None:
            global_step = int(sess.read({"global_step": self.global_step})["global_step"])
        self._summaries_written += 1
        self._last_summary = time.monotonic()
        self.summary_writer.add_summary(summary, global_step)

    def save(self, session: Session) -> str:
        """Writes a checkpoint to the log folder now; returns its prefix.

        Raises:
          UserError: there is no log folder to write to, or no saver.
          NotFiniteError: a value has a NaN or infinity in it; nothing is written.
        """
        if self.save_path is None or self.saver is None:
            raise UserError(
                "save() needs a log folder and a saver; pass logdir= to the supervisor, and not "
                "saver=None"
            )
        self._last_save = time.monotonic()
        return str(self.saver.save(session, self.save_path, global_step=self.global_step))

    def should_stop(self) -> bool:
        """Whether somebody asked this process to stop."""
        return bool(self.coord.should_stop())

    def request_stop(self, ex: BaseException | None = None) -> None:
        """Asks every thread of this process to stop; `ex` is raised again by `stop`."""
        # With its traceback: TensorFlow would look for that where an exception is being handled.
        self.coord.request_stop(ex and (type(ex), ex, ex.__traceback__))

    def wait_for_stop(self) -> None:
        """Blocks until somebody asks for a stop."""
        self.coord.wait_for_stop()

    def loop(
        self, timer_interval_secs: float, target: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        """Starts a thread that calls `target` every so many seconds, until the stop."""
        looper = tf1.train.LooperThread(
            self.coord, timer_interval_secs, target=target, args=args, kwargs=kwargs
        )
        looper.start()
        return looper

    def start_queue_runners(
        self, sess: Any, queue_runners: Sequence[Any] | None = None
    ) -> list[Any]:
        """Starts threads for the graph's queue runners; legacy runtime only.

        Raises:
          UserError: on the modern runtime, which has no queue runners.
        """
        if self.runtime.name != "legacy":
            raise UserError("queue runners need graphs; use --runtime=legacy, or tf.data")
        if queue_runners is None:
            queue_runners = tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
        threads: list[Any] = []
        for runner in queue_runners:
            raw = getattr(sess, "raw", sess)
            threads += runner.create_threads(raw, coord=self.coord, daemon=True, start=True)
        return threads

    def stop(
        self,
        threads: Any = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = True,
    ) -> None:
        """Stops the threads and tells the serving tasks that this one is done.

        Raises:
          Exception: what a thread handed to `request_stop`.
        """
        self.request_stop()
        try:
            self.coord.join(
                threads,
                # Threads in a call that was left behind do not end.
                stop_grace_period_secs=0 if watchdog.is_stuck() else self.stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._writer not in (None, self.USE_DEFAULT):
                self._writer.close()
            if self.runtime.server is not None:
                self.runtime.server.announce_end()
