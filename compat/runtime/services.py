"""Writes summaries, steps per second and checkpoints at intervals, for a supervisor's chief."""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial
from typing import Any

import numpy as np

from compat._tensorflow import tf1
from compat.cluster.liveness.cluster import Cluster
from compat.cluster.liveness.coordination import is_failing
from compat.cluster.liveness.departures import Departures, save_rest, updates_together
from compat.runtime.run import Run
from compat.runtime.session import Session, Values


class Services:
    """The standard services of a supervisor, without threads: training calls write their results.

    While the services are `running`, training calls check whether a result is due.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = threading.RLock()  # A program may train on several threads.
        self.running = False
        # The session in which this task makes its updates, and the task's part in the run.
        self.part: tuple[Session, Departures] | None = None
        self._last_summary: float | None = None
        self._last_save = self._last_count = 0.0
        self._counted = 0

    def start(self, session: Session) -> None:
        """Starts the services, and writes their first results.

        These are a session log, a summary and, if there is no checkpoint yet, a checkpoint.
        """
        run, writer = self._run, self._run.summary_writer
        summaries = run.save_summaries_secs if writer else 0
        self.running = bool(summaries or run.save_model_secs)
        self._last_save = self._last_count = time.monotonic()
        self._last_summary = None
        if run.global_step is not None and writer:
            self._counted = self._read_step(session)
            self._log(tf1.SessionLog.START, self._counted)
        if summaries:
            session.summarize()
            self._write_rate(0.0, self._counted)
        if run.save_model_secs and not run.recovery.prefixes:
            self.save(session)

    def take_part(self, session: Session, server: Cluster | None) -> None:
        """Stores the session of an asynchronous trainer, for `follow_others` and `stop`."""
        departures, graph = None if server is None else server.departures, self._run.graph
        together = graph is not None and updates_together(graph)
        if departures is not None and not together:
            self.part = session, departures

    def follow_others(self, *args: Any, **kwargs: Any) -> bool:
        """Announces that this task has made its last update; the chief then waits for the others.

        Returns whether the chief found another trainer still training. The arguments are those of
        `Departures.wait_for_others`.
        """
        part, self.part = self.part, None
        if part is None:
            return False
        part[1].leave()
        return part[1].wait_for_others(*args, **kwargs)

    def stop(self) -> None:
        """Stops the services; the chief first waits for other trainers' updates, and saves them."""
        part, saves = self.part, self.running and bool(self._run.save_model_secs)
        follows = saves or not self._run.is_chief
        if part is not None and follows and not is_failing(self._run.coord):
            waited, run = self.follow_others(), self._run
            reads = None if run.global_step is None else partial(self._read_step, part[0])
            if saves:
                save_rest(waited, run.saver, reads, partial(self.save, part[0]))
        self.running, self.part = False, None

    def after_training_call(
        self,
        session: Session,
        values: Values | None,
        summary: bytes | None = None,
        collects: bool = False,
    ) -> None:
        """Writes the due results of a training call; `values` are those of a step, or None.

        If `collects`, the step has summary operations of its own, and their result `summary` is
        written instead of the values. It is None if no summary was due at the call.
        """
        if not self.running:
            return
        with self._lock:
            now, run = time.monotonic(), self._run
            if values is not None and self.summary_due() and run.summary_op is not None:
                step = int(values.get("global_step", session.planned_step))
                scalars = {
                    name: value
                    for name, value in values.items()
                    if name != "global_step" and isinstance(value, (bool, float, int))
                }
                written = summary if collects else scalars
                if written is not None:
                    run.summary_computed(session, written, step)
            every = run.save_summaries_secs
            if every and run.global_step is not None and now - self._last_count >= every:
                step = self._read_step(session)
                self._write_rate((step - self._counted) / (now - self._last_count), step)
                self._counted, self._last_count = step, now
            if run.save_model_secs and now - self._last_save >= run.save_model_secs:
                self.save(session)

    def summary_due(self) -> bool:
        """Whether the next training call is to write a summary; the first one is."""
        every, last = self._run.save_summaries_secs, self._last_summary
        if not (self.running and every and self._run.summary_writer):
            return False
        return last is None or time.monotonic() - last >= every

    def write_summary(self, session: Any, summary: Any, step: int | None) -> None:
        """Writes a summary, and restarts the interval to the next one; see `summary_computed`."""
        if isinstance(summary, dict):
            values = [tf1.Summary.Value(tag=n, simple_value=v) for n, v in summary.items()]
            summary = tf1.Summary(value=values)
        if step is None and self._run.global_step is not None:
            step = self._read_step(session)
        self._last_summary = time.monotonic()
        self._run.summary_writer.add_summary(summary, step)

    def save(self, session: Any) -> str:
        """Writes a checkpoint; returns its prefix."""
        run = self._run
        path, global_step = run.save_path, run.global_step
        graph, saver = run.graph, run.saver
        # The supervisor writes the graph once, not with each checkpoint.
        is_ours = isinstance(saver, run.runtime.saver_class)
        options = {"write_meta_graph": False} if is_ours else {}
        with self._lock, graph.as_default() if graph else contextlib.nullcontext():
            self._last_save = time.monotonic()
            prefix = str(saver.save(session, path, global_step=global_step, **options))
            if self.running and run.summary_writer and global_step is not None:
                step = self._read_step(session)
                self._log(tf1.SessionLog.CHECKPOINT, step, checkpoint_path=path)
        return prefix

    def _read_step(self, session: Any) -> int:
        return int(np.asarray(session.run(self._run.global_step)).item())

    def _log(self, status: Any, step: int | None = None, **fields: Any) -> None:
        entry = tf1.SessionLog(status=status, **fields)
        self._run.summary_writer.add_session_log(entry, step)

    def _write_rate(self, rate: float, step: int) -> None:
        name = variable_name(self._run.global_step)
        if name and self._run.summary_writer:
            value = tf1.Summary.Value(tag=f"{name}/sec", simple_value=rate)
            self._run.summary_writer.add_summary(tf1.Summary(value=[value]), step)


def variable_name(variable: Any) -> str:
    """Returns the name of a variable, without the ":0"; empty for None."""
    return "" if variable is None else str(variable.name.rpartition(":")[0])
