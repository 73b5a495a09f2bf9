"""`--track`: logs an unchanged script to TensorBoard and MLflow.

Only the chief writes; flags are parameters, and every scalar summary is a metric.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import time
from typing import Any

from compat._tensorflow import private
from compat.errors import UserError
from compat.scripts.calls import flags as script_flags
from compat.scripts.cluster import distributed
from compat.tracking import FAILED, Tracker, experiment, tracking_command
from compat.tracking.files import lock


class Record:
    """The MLflow run of a script, started when the script opens its first event file."""

    def __init__(self) -> None:
        self._tracker: Tracker | None = None
        self._logdir: str | None = None
        self._locks: dict[str, Any] = {}

    def folder(self, logdir: str) -> str:
        """Returns the folder for a writer: the script's own, or a temporary one to discard."""
        logdir = os.path.abspath(os.fspath(logdir))
        if not distributed.is_chief() or not self._own(logdir):
            nowhere = tempfile.mkdtemp(prefix="compat-run-")
            atexit.register(shutil.rmtree, nowhere, ignore_errors=True)
            return nowhere
        self._begin(logdir)
        return logdir

    def _own(self, logdir: str) -> bool:
        """Whether this process, and no other of the run, writes to the folder."""
        if logdir not in self._locks:
            os.makedirs(logdir, exist_ok=True)
            with contextlib.suppress(UserError):
                self._locks[logdir] = lock(os.path.join(logdir, "events.lock"), "in use")
        return logdir in self._locks

    def _begin(self, logdir: str) -> None:
        if self._tracker is not None:
            return
        self._logdir = logdir
        script = os.path.splitext(os.path.basename(sys.argv[0]))[0] or "script"
        name = experiment(None, script)
        self._tracker = Tracker(logdir, tracking_uri=None, experiment_name=name, run_name=None)
        values = {
            name: value if isinstance(value, (bool, int, float, str)) else str(value)
            for name, value in script_flags.FLAGS.values().items()
        }
        self._tracker.params(dict(values, script=sys.argv[0]))

    def event(self, event: Any) -> None:
        """Logs the scalars of an event that the script writes as metrics."""
        if self._tracker is None or not event.HasField("summary"):
            return
        scalars = (value for value in event.summary.value if value.HasField("simple_value"))
        values = {value.tag: value.simple_value for value in scalars}
        if values:
            self._tracker.scalars(event.step, values)

    def close(self, exit_code: int) -> None:
        """Ends the run with the status of the script's exit code, and prints how to open it."""
        if self._tracker is None and distributed.is_chief():
            self._begin(os.path.abspath(time.strftime("runs/script-%Y%m%d-%H%M%S")))
        if self._tracker is not None and self._logdir is not None:
            status = {0: "FINISHED", 130: "KILLED"}.get(exit_code, FAILED)
            self._tracker.close(status)
            print(f"TensorBoard:  tensorboard --logdir {self._logdir}")
            print(f"MLflow:       {tracking_command(self._logdir, None)}", flush=True)


RECORD = Record()


def install() -> None:
    """Routes the event files of this process through `RECORD`; TensorFlow must be loaded."""
    home, user = private.event_writers()
    original: Any = home.EventFileWriter

    class EventFileWriter(original):
        def __init__(self, logdir: str, *args: Any, **kwargs: Any) -> None:
            super().__init__(RECORD.folder(logdir), *args, **kwargs)

        def add_event(self, event: Any) -> None:
            super().add_event(event)
            RECORD.event(event)

    home.EventFileWriter = user.EventFileWriter = EventFileWriter
