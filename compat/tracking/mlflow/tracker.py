"""MLflow as the training sees it: a file to append to, and a process that sends it.

Only that process, `compat.tracking.mlflow.sender`, imports MLflow, so a server that is slow or dead
costs the training no step; and as it outlives the training, the run gets an honest end.
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
from typing import Any, Callable, Mapping

from compat.errors import UserError
from compat.tracking.interface import FINISHED, Param, Writer
from compat.tracking.mlflow import spool
from compat.tracking.mlflow.stores import store_uri
from compat.tracking.redaction import redacted, redacted_text

LOG = "tracking.log"
REFUSED = 3  # the sender's exit status when all was sent, but part of it refused for good
# How long `close` waits: a server that hangs must not keep the machine, while a local database
# always answers, if late on a busy machine, and would be ruined if its making were cut off.
_SERVER_PATIENCE = 6.0
_DATABASE_PATIENCE = 180.0
# Nor does a training take longer that has failed, or was asked to end by SIGTERM: that has 20 s for
# all it does.
_STOPPED_PATIENCE = 8.0
_SILENT_SECS = 60.0


class Tracker(Writer):
    """Has one MLflow run follow the training, over all its restarts in a log folder."""

    def __init__(
        self,
        logdir: str,
        *,
        tracking_uri: str | None,
        experiment_name: str,
        run_name: str | None,
        say: Callable[[str], object] = print,
        patience: float | None = None,
        training: str | None = None,
    ) -> None:
        """Opens the spool in the log folder and starts the process that sends it.

        Args:
          logdir: The log folder, created if there is none.
          tracking_uri: As for `stores.store_uri`; None for a SQLite database in the log folder.
          experiment_name: The MLflow experiment, made if there is none.
          run_name: The name of the run, if it is made now; None lets MLflow invent one.
          say: Takes one line for the user.
          patience: How many seconds `close` waits for the delivery of what is left; None for 6
            with a server and 180 with SQLite. If the training was not finished, it waits 8 at most,
            and leaves the rest of the time to the process that sends.
          training: The log folder of a training whose run is joined, as by an evaluator: it is
            given metrics, and neither begun nor ended; None for a run of its own.

        Raises:
          UserError: If MLflow is not installed or cannot serve `tracking_uri`, another training
            is writing to the log folder, or the folder cannot be written to.
        """
        self._logdir = os.path.abspath(logdir)
        self._uri = store_uri(tracking_uri, logdir)
        self._say = say
        if patience is None:
            patience = _DATABASE_PATIENCE if self._uri.startswith("sqlite") else _SERVER_PATIENCE
        self._patience = patience
        self._joins = training is not None
        if importlib.util.find_spec("mlflow") is None:
            raise UserError(
                f"MLflow is not installed for {sys.executable}; expected version 1.30 or newer;"
                " run `python -m pip install mlflow` or train without it"
            )
        try:
            os.makedirs(self._logdir, exist_ok=True)
            self._spool: spool.Spool | None = spool.Spool(self._logdir)
            if training is not None:
                self._append("join", training=os.path.abspath(training))
            else:
                self._append(
                    "start",
                    id=uuid.uuid4().hex,
                    experiment=experiment_name,
                    run=run_name,
                    time=spool.now_ms(),
                )
            self._sender = self._start_sender()
        except OSError as error:
            raise UserError(
                f"log folder {logdir!r} cannot be written to ({error.strerror}); expected a folder"
                " with room; give another one"
            ) from error

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """See `Writer.scalars`; the time is that of the call, whenever it is sent."""
        self._append(
            "metrics",
            step=int(step),
            time=spool.now_ms(),
            values={name: float(value) for name, value in values.items()},
        )

    def params(self, values: Mapping[str, Param]) -> None:
        """Records `values` without secrets.

        MLflow refuses to change a setting; after a resume a changed one becomes the tag
        `resumed.<name>`.
        """
        self._append("params", values=redacted(values))

    def tags(self, values: Mapping[str, str]) -> None:
        """Records `values` without secrets."""
        self._append("tags", values=redacted(values))

    def artifact(self, path: str, folder: str = "") -> None:
        """See `Writer.artifact`."""
        self._append("artifact", path=os.path.abspath(path), folder=folder)

    def close(self, status: str = FINISHED) -> None:
        """Ends the run, and waits a little for the delivery; a second call does nothing.

        What could not be delivered stays in the spool; one line says how to send it.
        """
        if self._sender.stdin is None or self._sender.stdin.closed:
            return
        if not self._joins:
            self._append("end", status=status, time=spool.now_ms())
        if self._spool:
            self._spool.close()
            self._spool = None
        self._sender.stdin.close()
        if not os.path.exists(os.path.join(self._logdir, spool.SPOOL)):
            self._sender.kill()  # It would look for it as long as it may.
        if status != FINISHED and self._patience > _STOPPED_PATIENCE:
            if not self._is_sent_within(_STOPPED_PATIENCE):
                self._say(
                    f"MLflow: process {self._sender.pid} sends the rest and then ends, after "
                    f"{self._patience:g} s at the latest"
                )
                return
        elif not self._is_sent_within(min(_SILENT_SECS, self._patience)):
            rest = self._patience - _SILENT_SECS
            if rest > 0:
                self._say(f"MLflow: the rest is being sent, for {rest:g} s more at the most")
            if rest <= 0 or not self._is_sent_within(rest):
                self._sender.kill()
                self._sender.wait()
        try:
            left = spool.pending(self._logdir)
        except FileNotFoundError:
            self._say(f"MLflow: {self._logdir!r} was removed, and with it what was not sent yet")
            return
        if left:
            self._say(
                f"MLflow: {left} records were not delivered and wait in"
                f" {os.path.join(self._logdir, spool.SPOOL)}; to send them: {self._command()}"
            )
        elif self._sender.returncode == REFUSED:
            self._say(
                "MLflow: part of the run was refused;"
                f" {os.path.join(self._logdir, LOG)} says what and why"
            )

    def _is_sent_within(self, secs: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._sender.wait(secs)
        return self._sender.poll() is not None

    def _command(self) -> str:
        folder, uri = shlex.quote(self._logdir), shlex.quote(redacted_text(self._uri))
        return f"python -m compat.tracking.mlflow.sender {folder} --tracking_uri={uri}"

    def _start_sender(self) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        # The URI may hold a password, which a command line would show to everybody.
        env = dict(os.environ, PYTHONPATH=path, MLFLOW_TRACKING_URI=self._uri)
        with open(os.path.join(self._logdir, LOG), "ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "compat.tracking.mlflow.sender",
                    self._logdir,
                    f"--follow={self._patience:g}",
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=env,
                # Neither Ctrl-C nor a kill of the training's process group may reach it.
                start_new_session=True,
            )

    def _append(self, kind: str, **fields: Any) -> None:
        if self._spool:
            try:
                self._spool.append(kind, **fields)
            except OSError as error:
                self._spool.close()
                self._spool = None
                self._say(
                    f"MLflow: no more is recorded in {self._logdir!r} ({error.strerror});"
                    " the training goes on"
                )
