"""What is left of a spool on its way into an MLflow run."""

from __future__ import annotations

import os
from typing import Callable

from compat.tracking.mlflow import spool
from compat.tracking.mlflow.run import METRICS_A_BATCH, MlflowRun

_LEAST_METRICS = 50


class Delivery:
    """Delivers the spool of one log folder to one store, as `stores.store_uri` gives it.

    `say` takes a line about what was not delivered, and why.
    """

    def __init__(self, logdir: str, uri: str, say: Callable[[str], object]) -> None:
        self._logdir = logdir
        self._say = say
        self._run = MlflowRun(logdir, uri, say)
        self._reason = ""
        self._most = METRICS_A_BATCH

    @property
    def refused(self) -> bool:
        """Whether the store refused some of it for good."""
        return self._run.refused

    def attempt(self, over: bool) -> bool:
        """Sends what there is, with the end of a training that is over; returns if it could."""
        if not over and not self._run.is_there:
            return True  # The training makes it, and the store is in no trouble.
        try:
            self._deliver()
            last_heard_of = spool.abandoned(self._logdir) if over else None
            if last_heard_of is not None:
                self._run.end("FAILED", last_heard_of)
        except Exception as error:  # whatever MLflow and what is below it raise
            # A slow server may manage fewer metrics before the time-out.
            self._most = max(_LEAST_METRICS, self._most // 2)
            reason = f"{type(error).__name__}: {error}"
            if reason != self._reason:
                self._say("not delivered, will try again: " + reason)
            self._reason = reason
            return False
        self._reason = ""
        return True

    def upload(self, name: str) -> None:
        """Adds a file of the log folder, if it is there, to the artifacts of the run."""
        path = os.path.join(self._logdir, name)
        try:
            if os.path.exists(path):
                self._run.artifact(path, "")
        except Exception as error:
            self._say(f"{path!r} was not uploaded: {error}")

    def _deliver(self) -> None:
        if self._run.connect():
            spool.set_delivered(self._logdir, 0)
        offset = spool.delivered(self._logdir)
        metrics: list[tuple[str, float, int, int]] = []
        # The offset is noted after the delivery: what a crash in between sends twice is kept once.
        for record, behind in spool.read(self._logdir, offset):
            if metrics and (record["kind"] != "metrics" or len(metrics) >= self._most):
                self._run.metrics(metrics)
                metrics = []
                spool.set_delivered(self._logdir, offset)
            if record["kind"] == "metrics":
                metrics += [
                    (name, value, record["time"], record["step"])
                    for name, value in record["values"].items()
                ]
            else:
                self._dispatch(record)
                spool.set_delivered(self._logdir, behind)
            offset = behind
        if metrics:
            self._run.metrics(metrics)
            spool.set_delivered(self._logdir, offset)

    def _dispatch(self, record: spool.Record) -> None:
        kind = record["kind"]
        if kind == "start":
            self._run.start()
        elif kind == "params":
            self._run.params(record["values"])
        elif kind == "tags":
            self._run.tags(record["values"])
        elif kind == "artifact":
            self._run.artifact(record["path"], record["folder"])
        elif kind == "end":
            self._run.end(record["status"], record["time"])
