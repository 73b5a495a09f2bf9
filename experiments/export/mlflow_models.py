"""Logs a model to the MLflow run of its log folder, and registers it; the best gets an alias."""

from __future__ import annotations

import contextlib
import io
from typing import Any, Mapping

from compat import UserError
from compat.tracking import store_uri
from compat.tracking.mlflow import model as mlflow_model
from compat.tracking.mlflow import run_id
from experiments.evaluation import selection
from experiments.export.model import Model

ALIAS = "best"


def log(model: Model, saved_model: str) -> str:
    """Logs an exported model with its signature and an input example; returns its URI.

    The example is the first row of the training data if these are arrays, else zeros.

    Raises:
      UserError: the log folder has no MLflow run, the run has not ended, or the store fails.
    """
    settings = model.experiment.settings
    run = run_id.read(settings.logdir)
    if run is None:
        raise UserError(
            f"{settings.logdir} has no MLflow run to log the model to; leave --mlflow out"
        )
    uri = store_uri(settings.tracking_uri, settings.logdir)
    inputs, outputs = _described(model.inputs), _described(model.outputs)
    return mlflow_model.log(uri, run, saved_model, inputs, outputs, model.example)


def _described(tensors: Mapping[str, Any]) -> dict[str, mlflow_model.Tensor]:
    return {
        name: mlflow_model.Tensor(tensor.dtype.as_numpy_dtype, tensor.shape.as_list())
        for name, tensor in tensors.items()
    }


def monitored(model: Model) -> float:
    """Returns the value of the experiment's `monitor` for the exported checkpoint.

    Raises:
      UserError: the checkpoint was not evaluated, or this MLflow has no aliases.
    """
    import mlflow

    monitor, logdir = model.experiment.monitor, model.experiment.settings.logdir
    if not hasattr(mlflow.tracking.MlflowClient, "set_registered_model_alias"):
        raise UserError(
            f"--register needs the aliases of MLflow 2.3, found {mlflow.__version__}; leave it out"
        )
    for evaluation in reversed(selection.read(logdir)):
        if evaluation.step == model.step and monitor in evaluation.values:
            return evaluation.values[monitor]
    raise UserError(
        f"step {model.step} of {logdir} has no {monitor} by which --register compares; "
        "export the best checkpoint"
    )


def register(model: Model, uri: str, name: str, value: float) -> str:
    """Registers a model as a new version of `name`; returns a line about it.

    The alias "best" moves to the new version, unless the version that has the alias is as good or
    better by the monitored value.

    Args:
      model: the exported model.
      uri: the URI of the logged model, "runs:/...".
      name: the name of the registered model, which is created if it does not exist.
      value: what `monitored` returned.

    Raises:
      UserError: the store has no registry, or refuses the name.
    """
    import mlflow

    experiment = model.experiment
    monitor, settings = experiment.monitor, experiment.settings
    client = mlflow.tracking.MlflowClient(store_uri(settings.tracking_uri, settings.logdir))
    try:
        best = _best(client, name)
        with contextlib.redirect_stderr(io.StringIO()):  # MLflow says the same in two lines.
            made = mlflow.register_model(uri, name)
        tags = {"monitor": monitor, "value": repr(value), "step": str(model.step)}
        for tag, text in tags.items():
            client.set_model_version_tag(name, made.version, tag, text)
        sign = 1 if experiment.mode == "max" else -1
        if (
            best is not None
            and best.tags.get("monitor") == monitor
            and sign * value <= sign * float(best.tags["value"])
        ):
            return (
                f"{name} {made.version}, {monitor} {value:.4g}; version {best.version} is not worse"
            )
        client.set_registered_model_alias(name, ALIAS, made.version)
    except mlflow.exceptions.MlflowException as error:
        raise UserError(
            f"the model cannot be registered as {name!r} ({str(error).splitlines()[0]}); choose "
            "another name, or leave --register out"
        ) from error
    return f"{name} {made.version}, {monitor} {value:.4g}, models:/{name}@{ALIAS} now"


def _best(client: Any, name: str) -> Any:
    """Returns the version that has the alias, or None."""
    found = client.search_registered_models(f"name = '{name}'")
    version = found[0].aliases.get(ALIAS) if found else None
    return None if version is None else client.get_model_version(name, version)
