"""Writes summaries, steps per second and checkpoints at intervals, for a supervisor's chief."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from compat._tensorflow import tf1

if TYPE_CHECKING:
    from compat.runtime.session import Session, Values
    from compat.supervisor import Supervisor


class Services:
    """The standard services of a supervisor, without threads: training calls write what is due.

    Attributes:
      running: whether anything will be due.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._lock = threading.RLock()  # A program may train on several threads.
        self.running = False
        self._summaries_written = 0
        self._last_summary = self._last_save = self._last_count = 0.0
        self._counted = 0

    def start(self, session: Session) -> None:
        """Writes what TensorFlow's threads write at once; the rest is due with training calls."""
        supervisor, writer = self._supervisor, self._supervisor.summary_writer
        summaries = supervisor.save_summaries_secs if writer else 0
        self.running = bool(summaries or supervisor.save_model_secs)
        self._last_summary = self._last_save = self._last_count = time.monotonic()
        self._summaries_written = 0
        if supervisor.global_step is not None and writer:
            self._counted = self._read_step(session)
            self._log(tf1.SessionLog.START, self._counted)
        if summaries:
            session.summarize()
            self._write_rate(0.0, self._counted)
        if supervisor.save_model_secs and not supervisor.recovery.prefixes:
            self.save(session)

    def stop(self) -> None:
        """Makes nothing due any more."""
        self.running = False

    def after_training_call(self, session: Session, values: Values | None) -> None:
        """Writes what is due; see `Supervisor.after_training_call`."""
        if not self.running:
            return
        with self._lock:
            now = time.monotonic()
            supervisor = self._supervisor
            if values is not None and self.summary_due() and supervisor.summary_op is not None:
                step = int(values.get("global_step", session.planned_step))
                scalars = {n: v for n, v in values.items() if n != "global_step" and _is_scalar(v)}
                supervisor.summary_computed(session, scalars, step)
            if (
                supervisor.save_summaries_secs
                and supervisor.global_step is not None
                and now - self._last_count >= supervisor.save_summaries_secs
            ):
                step = self._read_step(session)
                self._write_rate((step - self._counted) / (now - self._last_count), step)
                self._counted, self._last_count = step, now
            if supervisor.save_model_secs and now - self._last_save >= supervisor.save_model_secs:
                self.save(session)

    def summary_due(self) -> bool:
        """Whether the next training call is to write a summary; the first one is."""
        every = self._supervisor.save_summaries_secs
        if not (self.running and every and self._supervisor.summary_writer):
            return False
        return self._summaries_written == 0 or time.monotonic() - self._last_summary >= every

    def write_summary(self, session: Any, summary: Any, step: int | None) -> None:
        """Writes a summary, and starts the time until the next; see `summary_computed`."""
        if isinstance(summary, dict):
            values = [tf1.Summary.Value(tag=n, simple_value=v) for n, v in summary.items()]
            summary = tf1.Summary(value=values)
        if step is None and self._supervisor.global_step is not None:
            step = self._read_step(session)
        self._summaries_written += 1
        self._last_summary = time.monotonic()
        self._supervisor.summary_writer.add_summary(summary, step)

    def _read_step(self, session: Any) -> int:
        return int(np.asarray(session.run(self._supervisor.global_step)).item())

    def save(self, session: Any) -> str:
        """Writes a checkpoint; returns its prefix."""
        supervisor = self._supervisor
        with self._lock, contextlib.ExitStack() as scopes:
            if supervisor.graph is not None:
                scopes.enter_context(supervisor.graph.as_default())
            self._last_save = time.monotonic()
            prefix = str(
                supervisor.saver.save(
                    session, supervisor.save_path, global_step=supervisor.global_step
                )
            )
            if self.running and supervisor.summary_writer and supervisor.global_step is not None:
                step = self._read_step(session)
                self._log(tf1.SessionLog.CHECKPOINT, step, checkpoint_path=supervisor.save_path)
        return prefix

    def _log(self, status: Any, step: int | None = None, **fields: Any) -> None:
        entry = tf1.SessionLog(status=status, **fields)
        self._supervisor.summary_writer.add_session_log(entry, step)

    def _write_rate(self, rate: float, step: int) -> None:
        name = variable_name(self._supervisor.global_step)
        if name and self._supervisor.summary_writer:
            value = tf1.Summary.Value(tag=f"{name}/sec", simple_value=rate)
            self._supervisor.summary_writer.add_summary(tf1.Summary(value=[value]), step)


def variable_name(variable: Any) -> str:
    """Returns the name of a variable, without the ":0"; empty for None."""
    return "" if variable is None else str(variable.name.rpartition(":")[0])


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, float, int))
