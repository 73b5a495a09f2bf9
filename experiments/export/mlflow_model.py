"""Logs a model to the MLflow run of its log folder, as a Python model with a signature."""

from __future__ import annotations

from typing import Any, Mapping

from compat import UserError
from compat.tracking import store_uri
from compat.tracking.mlflow import model as mlflow_model
from compat.tracking.mlflow import run_id
from experiments.export.model import Model


def log(model: Model, saved_model: str) -> str:
    """Logs an exported model with its signature and an input example; returns its URI.

    The example is a row of the training data where these are arrays.

    Raises `UserError` without a run in MLflow, for one that has not ended, or if the store fails.
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
