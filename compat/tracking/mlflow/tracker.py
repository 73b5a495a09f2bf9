"""Tracks a run in MLflow: a file to which training appends, and a process that sends the file.

Only `compat.tracking.mlflow.sender` imports MLflow, so a slow server does not slow down training.
The sender outlives the run, so the status of the run is always set.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Callable, Collection, Mapping

from compat.errors import UserError, reason_of
from compat.processes.forked import Forked
from compat.processes.forking import inherited, start
from compat.processes.output import terminal_columns
from compat.tracking.files import appending, writing_to
from compat.tracking.mlflow import spool
from compat.tracking.mlflow.curve_names import CurveNames
from compat.tracking.mlflow.source import source
from compat.tracking.mlflow.stores import URI_VARIABLE, experiment, is_given, store_uri
from compat.tracking.redaction import redacted, redacted_text
from compat.tracking.writer import FINISHED, Param, Writer

LOG = "tracking.log"
_SENDER = "compat.tracking.mlflow.sender"
DELIVERY = "compat.tracking.mlflow.delivery"  # The module that loads MLflow.
# Exit code of the sender if it has sent everything, but the store refused some records for good.
REFUSED = 3
# Seconds that `close` waits. A server that hangs must not keep the machine; a local database
# always answers, but late on a busy machine.
_SERVER_PATIENCE = 6.0
_DATABASE_PATIENCE = 180.0
# A run that has failed, or has 20 s to stop after SIGTERM, cannot wait that long.
_STOPPED_PATIENCE = 8.0
# On a terminal, a person waits for the prompt. Elsewhere the container may end together with the
# run.
_TERMINAL_PATIENCE = 3.0
_SILENT_SECS = 0.5
_EXIT_SECS = 3.0  # Seconds for the sender to remove unfinished files, after its patience.


class Tracker(Writer):
    """Writes one MLflow run; a restart in the same log folder adds to it."""

    def __init__(
        self,
        logdir: str,
        *,
        tracking_uri: str | None,
        experiment_name: str | None,
        run_name: str | None,
        say: Callable[[str], object] = print,
        patience: float | None = None,
        training: str | None = None,
        resume_step: int | None = None,
    ) -> None:
        """Opens the spool in the log folder and starts the process that sends it.

        Args:
          logdir: The log folder, created if it does not exist.
          tracking_uri: As for `stores.store_uri`.
          experiment_name: The MLflow experiment, created if it does not exist; None for
            `MLFLOW_EXPERIMENT_NAME` or MLflow's default experiment.
          run_name: The name of a new run; None lets MLflow choose one.
          say: Receives lines for the user.
          patience: Seconds that the delivery may take when the run has ended; None for 6 with a
            server and 180 with SQLite. `close` waits as long, but at most 3 s on a terminal, and at
            most 8 s if the run has not finished. The sender then continues without this process.
          training: The log folder of another task's run. An evaluator adds its metrics to that run,
            and does not set its status. None for a run of its own.
          resume_step: The global step of the checkpoint from which a run resumes. MLflow cannot
            delete points, so those of later steps stay, and the tag `superseded` lists them.

        Raises:
          UserError: MLflow is not installed or does not support `tracking_uri`, another process is
            writing to the log folder, or the folder is read-only.
        """
        self._logdir = os.path.abspath(logdir)
        self._tracking_uri, self._run_logdir = tracking_uri, training or logdir
        self._say = say
        usual = _DATABASE_PATIENCE if self._uri.startswith("sqlite") else _SERVER_PATIENCE
        self._patience = usual if patience is None else patience
        self._joins = training is not None
        self._names = CurveNames()
        if importlib.util.find_spec("mlflow") is None:
            raise UserError(
                f"MLflow is not installed for {sys.executable}; expected version 1.30 or newer;"
                " run `python -m pip install mlflow` or train without it"
            )
        with writing_to(logdir):
            self._spool: spool.Spool | None = spool.Spool(self._logdir)
            if training is not None:
                self._append("join", training=os.path.abspath(training))
            else:
                last = spool.last_step(self._logdir)
                self._names = CurveNames(spool.curves(self._logdir))
                self._append(
                    "start",
                    id=uuid.uuid4().hex,
                    experiment=experiment(experiment_name, "Default"),
                    run=run_name,
                    time=spool.now_ms(),
                    tags=source(),
                    **({} if is_given(tracking_uri) else {"store": self._uri}),
                )
                if resume_step is not None and resume_step < last:
                    self._supersede(max(resume_step, 0), last)
            self._sender = self._start_sender()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Records `values`, with the time of the call; see `Writer.scalars`."""
        points = {name: float(value) for name, value in values.items()}
        for name in points:
            if name not in self._names:
                other = self._names.before(name)
                if other is not None:
                    shown = self._names.of(name)
                    self._say(f"MLflow: {name!r} is {shown!r} there, where {other!r} has its name")
        self._append("metrics", step=int(step), time=spool.now_ms(), values=points)

    def params(self, values: Mapping[str, Param], tuned: Collection[str] | None = None) -> None:
        """Records `values` without secrets; `tuned` has no effect.

        MLflow does not allow a parameter to change. If a resumed run changes one, the new value
        is recorded as the tag `resumed.<name>`.
        """
        self._append("params", values=redacted(values))

    def tags(self, values: Mapping[str, str]) -> None:
        """Records `values` without secrets."""
        self._append("tags", values=redacted(values))

    def dataset(self, name: str, checksum: str, source: str, sizes: Mapping[str, int]) -> None:
        """Records the data set as an input of the run."""
        source = redacted_text(source)
        self._append("dataset", name=name, checksum=checksum, source=source, sizes=dict(sizes))

    def artifact(self, path: str, folder: str = "") -> None:
        self._append("artifact", path=os.path.abspath(path), folder=folder)

    def close(self, status: str = FINISHED) -> None:  # noqa: C901
        """Ends the run, and waits for the delivery; a second call does nothing.

        Records that could not be delivered stay in the spool; a line names the command that sends
        them.
        """
        if self._pipe.closed:
            return
        if not self._joins:
            self._append("end", status=status, time=spool.now_ms())
        if self._spool:
            self._spool.close()
            self._spool = None
        self._pipe.close()
        if not os.path.exists(os.path.join(self._logdir, spool.SPOOL)):
            self._sender.kill()  # Else the sender would search for it until its timeout.
        if not self._await_delivery(status):
            self._say(self._leaving())
            return
        pending = self._left()
        if pending is None:
            self._say(f"MLflow: {self._logdir!r} was removed, and with it what was not sent yet")
        elif pending:
            path = os.path.join(self._logdir, spool.SPOOL)
            self._say(
                f"MLflow: {pending} records were not delivered and wait in {path}; "
                f"{os.path.join(self._logdir, LOG)} says why; to send them: {self._sending()}"
            )
        elif self._sender.returncode == REFUSED:
            self._say(
                "MLflow: part of the run was refused;"
                f" {os.path.join(self._logdir, LOG)} has the details"
            )

    def _await_delivery(self, status: str) -> bool:
        """Waits for the process that sends the records; returns whether it has ended.

        The sender is killed if it needs longer than `patience`. On a terminal, or if the run did
        not finish, the wait is shorter, and a sender that needs longer continues by itself.
        """
        wait = self._patience
        if terminal_columns(sys.stdout) is not None:
            wait = min(wait, _TERMINAL_PATIENCE)
        elif status != FINISHED:
            wait = min(wait, _STOPPED_PATIENCE)
        if self._is_sent_within(min(_SILENT_SECS, wait)):
            return True
        if wait > _SILENT_SECS:
            self._say(f"MLflow: the rest is being sent, {self._left() or 0} records")
        if self._is_sent_within(max(wait - _SILENT_SECS, 0)):
            return True
        if wait < self._patience:
            return False
        if not self._is_sent_within(_EXIT_SECS):
            self._sender.kill()
            self._sender.wait()
        return True

    def _left(self) -> int | None:
        """Returns the number of undelivered records; None if the log folder was removed."""
        try:
            return spool.pending(self._logdir)
        except FileNotFoundError:
            return None

    def _leaving(self) -> str:
        pid, secs, command = self._sender.pid, self._patience, _command(self._logdir)
        return (
            f"MLflow: process {pid} sends the rest by itself, for {secs:g} s at the most; to see "
            f"its state: {command} --state; to send what is left then: {self._sending()}"
        )

    def _sending(self) -> str:
        """Returns the command that sends the remaining records, without a secret in it."""
        command = _command(self._logdir)
        if redacted_text(self._uri) == self._uri:
            return f"{command} --tracking_uri={shlex.quote(self._uri)}"
        if os.environ.get(URI_VARIABLE) == self._uri:
            return f"{command}, with {URI_VARIABLE} as it is now"
        return f"{command}, with the tracking URI and its password in {URI_VARIABLE}"

    @property
    def _uri(self) -> str:
        """The URI of the store.

        A tracker that adds its metrics to the run of another task uses that run's store. If the
        user gave no URI, that store is unknown until the run has started, and this is the default
        store.
        """
        return store_uri(self._tracking_uri, self._run_logdir)

    def _supersede(self, step: int, last: int) -> None:
        """Adds to the tag `superseded` that steps `step` + 1 to `last` are recorded again."""
        steps = f"{step + 1} to {last}"
        again = [spool.superseded(self._logdir), f"steps {steps}, by a resume from step {step}"]
        self._append("tags", values={"superseded": "; ".join(filter(None, again))})
        self._say(
            f"MLflow: the points of steps {steps} stay in the run beside those that are logged now;"
            " TensorBoard shows the latter only"
        )

    def _is_sent_within(self, secs: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._sender.wait(secs)
        return self._sender.poll() is not None

    def _start_sender(self) -> subprocess.Popen[bytes] | Forked:
        root = str(Path(__file__).resolve().parents[3])
        path = os.environ.get("PYTHONPATH", "")
        if root not in path.split(os.pathsep):
            path = os.pathsep.join(filter(None, [root, path]))
        # The URI may hold a password, and everybody can read a command line.
        env = dict(os.environ, PYTHONPATH=path)
        if is_given(self._tracking_uri) or not self._joins:
            env["MLFLOW_TRACKING_URI"] = self._uri
        command = [sys.executable, "-m", _SENDER, self._logdir, f"--follow={self._patience:g}"]
        reading, writing = os.pipe()
        # The pipe is closed when this process ends in any way.
        self._pipe = os.fdopen(writing, "wb")
        with os.fdopen(reading, "rb"), appending(os.path.join(self._logdir, LOG)) as log:
            outputs = {"stdout": log.fileno(), "stderr": log.fileno()}
            # A new session, shielded from signals: the sender exits when this process has ended.
            server = inherited(DELIVERY, env)
            return start(server, command, env=env, stdin=reading, shielded=True, **outputs)

    def _append(self, kind: str, **fields: Any) -> None:
        if self._spool:
            try:
                self._spool.append(kind, **fields)
            except OSError as error:
                self._spool.close()
                self._spool = None
                self._say(
                    f"MLflow: no more is recorded in {self._logdir!r} ({reason_of(error)});"
                    " the run continues"
                )


def _command(logdir: str) -> str:
    return f"python -m {_SENDER} {shlex.quote(logdir)}"
