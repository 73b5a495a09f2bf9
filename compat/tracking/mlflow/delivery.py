"""Delivers the spool of a log folder, the file with its records, to MLflow, across restarts.

If a response is lost, records are sent twice. MLflow keeps them once: a metric, parameter or tag
with the same value stays one, and an artifact is overwritten.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Mapping

from mlflow import entities
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from compat.tracking.mlflow import run_id, spool, system_metrics
from compat.tracking.mlflow.curve_names import CurveNames, mlflow_name
from compat.tracking.mlflow.stores import artifact_root, make_database

# The lowest limits of MLflow 1.30 to 3, since a server may be older than the client.
_METRICS_A_BATCH = 1000
_NAMES_A_BATCH = 100
_PARAM_LENGTHS = (6000, 500, 250)  # Limits of MLflow 3, of 1.28 to 2, and of older releases.
_TAG_LENGTH = 5000
_DIGEST_LENGTH = 36
_LEAST_METRICS = 50
_KEY = "training.id"
# Parts of messages about a database that another release of MLflow has written: MLflow's own, and
# that of Alembic if this release has tables which the other one does not have.
_OTHER_RELEASE = ("out-of-date database schema", "Can't locate revision identified by")


class Delivery:
    """Delivers the spool of one log folder, the file with the records of a run, to MLflow.

    Then it delivers the spools of the tasks, which have their system metrics, to the same run.

    Args:
      logdir: The log folder.
      uri: The URI of the store, as `stores.store_uri` returns it.
      say: Receives lines about records that were not delivered, with the reason.
      training: The log folder of the run to join; None to read it from the spool.
    """

    def __init__(
        self, logdir: str, uri: str, say: Callable[[str], object], training: str | None = None
    ) -> None:
        self.refused = False  # Whether the store refused a record for good.
        self.is_hopeless = False  # Whether another release of MLflow wrote the database.
        self._training = training
        self._tasks: dict[str, Delivery] = {}
        self._logdir = logdir
        self._uri = uri
        self._say = say
        self._reason = ""
        self._most_metrics = _METRICS_A_BATCH
        self._connected: MlflowClient | None = None
        self._run_id = ""
        self._has_metrics = False
        self._params: dict[str, str] = {}
        self._names: CurveNames | None = None  # Names of the delivered curves.

    def attempt(self, over: bool) -> bool:
        """Sends the records, and the end of the run if it is `over`; returns False if it failed."""
        if not over:
            training = self._joined()
            if training is not None and run_id.read(training) is None:
                return True  # The training program has not created the run yet.
        try:
            self._deliver()
            is_own = self._training is None
            last_heard_of = spool.abandoned(self._logdir) if over and is_own else None
            if last_heard_of is not None:
                self._end("FAILED", last_heard_of)
        except Exception as error:  # MLflow and its libraries raise errors of many classes.
            # A slow server may manage fewer metrics before the time-out.
            self._most_metrics = max(_LEAST_METRICS, self._most_metrics // 2)
            reason = f"{type(error).__name__}: {error}"
            self.is_hopeless = any(part in reason for part in _OTHER_RELEASE)
            if reason != self._reason and self.is_hopeless:
                self._say(
                    f"not delivered: {reason}; another release of MLflow has written the database; "
                    "use that release, or another --tracking_uri"
                )
            elif reason != self._reason:
                self._say(f"not delivered, will try again: {reason}")
            self._reason = reason
            return False
        self._reason = ""
        # MLflow lists metrics in the order of arrival, so those of the tasks are sent last.
        for folder in system_metrics.folders(self._logdir) if over or self._has_metrics else ():
            if folder not in self._tasks:
                self._tasks[folder] = Delivery(folder, self._uri, self._say, self._logdir)
        return all(task.attempt(over) for task in self._tasks.values())

    def _joined(self) -> str | None:
        return self._training or spool.joined(self._logdir)

    def upload(self, name: str) -> None:
        """Adds a file of the log folder, if it is there, to the artifacts of the run."""
        path = os.path.join(self._logdir, name)
        try:
            if os.path.exists(path):
                self._upload(path, "")
        except Exception as error:
            self._say(f"{path!r} was not uploaded: {error}")

    def _deliver(self) -> None:
        if not self._run_id:
            self._connect()
        offset = spool.delivered(self._logdir)
        if offset == 0 or self._names is None:
            self._names = CurveNames(spool.curves(self._logdir, offset))
        metrics: list[Metric] = []
        # The offset is stored after the delivery. Records that a crash sends twice are kept once.
        for record, behind in spool.read(self._logdir, offset):
            if metrics and (record["kind"] != "metrics" or len(metrics) >= self._most_metrics):
                self._log("metrics", metrics, _METRICS_A_BATCH)
                metrics = []
                spool.set_delivered(self._logdir, offset)
            if record["kind"] == "metrics":
                self._has_metrics = True
                metrics += [
                    Metric(self._names.of(name), value, record["time"], record["step"])
                    for name, value in record["values"].items()
                ]
            else:
                self._send(record)
                spool.set_delivered(self._logdir, behind)
            offset = behind
        if metrics:
            self._log("metrics", metrics, _METRICS_A_BATCH)
            spool.set_delivered(self._logdir, offset)

    def _send(self, record: spool.Record) -> None:
        kind = record["kind"]
        if kind == "start":  # A run that had ended is running again.
            self._client.update_run(self._run_id, status="RUNNING")
        elif kind == "params":
            self._log_params(record["values"])
        elif kind == "tags":
            self._set_tags(record["values"])
        elif kind == "dataset":
            self._log_dataset(record)
        elif kind == "artifact":
            self._upload(record["path"], record["folder"])
        elif kind == "end":
            self._end(record["status"], record["time"])

    @property
    def _client(self) -> MlflowClient:
        """The client, which connects on first use."""
        self._connected = self._connected or MlflowClient(tracking_uri=self._uri)
        return self._connected

    def _connect(self) -> None:
        """Finds or creates the run to which the records are sent."""
        training = self._joined()
        if training is not None:
            # Wait for the id: the training program also creates the store, and two processes must
            # not create it at the same time.
            joined = run_id.read(training)
            if joined is None:
                raise FileNotFoundError(f"the training in {training} has no run of MLflow yet")
            self._client.get_run(joined)
            self._run_id = joined
            return
        make_database(self._uri)
        start = next(record for record, _ in spool.read(self._logdir) if record["kind"] == "start")
        experiment_id = self._experiment(start["experiment"])
        existing = self._existing(experiment_id, start["id"])
        if existing is None:
            spool.set_delivered(self._logdir, 0)
        run = existing or self._create(experiment_id, start)
        self._params = dict(self._client.get_run(run).data.params)
        run_id.write(self._logdir, run, experiment_id)
        self._run_id = run

    def _experiment(self, name: str) -> str:
        """Returns the id of an experiment, which is created if it does not exist."""
        experiment = self._client.get_experiment_by_name(name)
        if experiment is not None:
            return str(experiment.experiment_id)
        root = artifact_root(self._uri)
        location = None if root is None else "file://" + root
        return str(self._client.create_experiment(name, artifact_location=location))

    def _existing(self, experiment_id: str, key: str) -> str | None:
        """Returns the id of the run, from the file or, after an interruption, by its key."""
        noted = run_id.read(self._logdir)
        try:
            if noted and self._client.get_run(noted).info.lifecycle_stage == "active":
                return noted
        except MlflowException as error:
            # If the store has changed, it gets a run with all records.
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
        runs = self._client.search_runs([experiment_id], f"tags.`{_KEY}` = '{key}'")
        return runs[0].info.run_id if runs else None

    def _create(self, experiment_id: str, start: spool.Record) -> str:
        # Pass the name as an argument: as a tag, it clashes with the one that MLflow 1 invents.
        created = self._client.create_run(
            experiment_id,
            start_time=start["time"],  # A short run may have ended already.
            # `mlflow.user` is the user of the run only if it is passed here.
            tags={**_texts(start.get("tags", {}), _TAG_LENGTH), _KEY: start["id"]},
            run_name=start["run"],
        )
        return str(created.info.run_id)

    def _end(self, status: str, time_ms: int) -> None:
        self._client.set_terminated(self._run_id, status, end_time=time_ms)

    def _log_params(self, values: Mapping[str, object]) -> None:
        """Logs parameters; one that the run has with another value becomes `resumed.<name>`."""
        texts = _texts(values, _PARAM_LENGTHS[0])
        new = {name: text for name, text in texts.items() if name not in self._params}
        self._log("params", [Param(name, text) for name, text in new.items()], _NAMES_A_BATCH)
        self._params.update(new)
        for name, value in values.items():
            if len(str(value)) > _PARAM_LENGTHS[0]:
                self._say_cut(name, _PARAM_LENGTHS[0])
        changed = {n: text for n, text in texts.items() if not _is_of(text, self._params[n])}
        self._set_tags({"resumed." + name: text for name, text in changed.items()})

    def _set_tags(self, values: Mapping[str, str]) -> None:
        texts = _texts(values, _TAG_LENGTH)
        self._log("tags", [RunTag(name, text) for name, text in texts.items()], _NAMES_A_BATCH)

    def _log_dataset(self, record: spool.Record) -> None:
        """Adds a data set to the inputs of the run; MLflow before 2.4 has tags only."""
        if not hasattr(entities, "DatasetInput"):
            return
        dataset = entities.Dataset(
            name=mlflow_name(record["name"]),
            digest=record["checksum"][:_DIGEST_LENGTH] or "stream",
            source_type="local",
            source=json.dumps({"uri": record["source"]}),
            profile=json.dumps(record["sizes"]),
        )
        context = entities.InputTag("mlflow.data.context", "training")
        inputs = [entities.DatasetInput(dataset, [context])]
        try:
            self._client.log_inputs(self._run_id, inputs)
        except MlflowException as error:
            # The store answers, so it is an older server that does not support data sets.
            self._client.get_run(self._run_id)
            self._refuse(f"data set {record['name']!r}", error)

    def _upload(self, path: str, folder: str) -> None:
        """Uploads a file or folder; drops it if a retry would fail as well.

        That is so if it is outside the log folder, cannot be read, or is refused by the store.
        """
        reason = spool.reason_refused(self._logdir, path, folder)
        if reason is not None:
            self._refuse(f"artifact {path!r}", reason)
            return
        upload = self._client.log_artifacts if os.path.isdir(path) else self._client.log_artifact
        try:
            upload(self._run_id, path, folder or None)
        except Exception as error:
            # The store answers, so the error is about this artifact, and a retry would fail, too.
            self._client.get_run(self._run_id)
            self._refuse(f"artifact {path!r}", error)

    def _log(self, kind: str, items: list[Any], most: int) -> None:
        """Logs metrics, params or tags, at most `most` at a time."""
        for start in range(0, len(items), most):
            batch = items[start : start + most]
            try:
                self._client.log_batch(self._run_id, **{kind: batch})
            except MlflowException as error:
                if error.error_code != "INVALID_PARAMETER_VALUE":
                    raise
                shorter = _shortened(batch[0]) if len(batch) == 1 and kind == "params" else None
                if shorter is not None:
                    self._say_cut(shorter.key, len(shorter.value))
                    self._log(kind, [shorter], most)
                elif len(batch) == 1:
                    self._refuse(f"{kind} {batch[0].key!r}", error)
                else:  # One invalid item must not prevent the others of its batch.
                    self._log(kind, batch, len(batch) // 2)

    def _say_cut(self, name: str, length: int) -> None:
        what = f"setting {name!r} is cut to {length} characters, which its server takes"
        self._say(f"{what}; {spool.SPOOL} has all of it")

    def _refuse(self, what: str, error: object) -> None:
        self.refused = True
        self._say(f"{what} is given up: {error}")


def _texts(values: Mapping[str, object], length: int) -> dict[str, str]:
    """Returns texts of at most `length` characters, by names that every MLflow accepts."""
    return {mlflow_name(name): _cut(str(value), length) for name, value in values.items()}


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _shortened(param: Any) -> Any:
    """Returns a parameter shortened for older servers; None if it is short enough for all."""
    lengths = [length for length in _PARAM_LENGTHS if length < len(param.value)]
    return Param(param.key, _cut(param.value, lengths[0])) if lengths else None


def _is_of(text: str, kept: str) -> bool:
    """Returns whether `kept`, a parameter of a run, equals the text or its beginning."""
    return text == kept or (kept.endswith("...") and text.startswith(kept[:-3]))
