"""Logs a model to the MLflow run of its log folder, as a Python model with a signature."""

from __future__ import annotations

import inspect
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np

from compat import UserError
from compat._tensorflow import version
from compat.tracking import store_uri
from compat.tracking.mlflow import run_id
from experiments.export.model import Model

_NAME = "model"
_LOADER = "mlflow_loader"


def log(model: Model, saved_model: str) -> str:
    """Logs an exported model with its signature and an input example; returns its URI.

    Raises `UserError` without a run in MLflow, for one that has not ended, or if the store fails.
    """
    settings = model.experiment.settings
    run = run_id.read(settings.logdir)
    if run is None:
        raise UserError(
            f"{settings.logdir} has no MLflow run to log the model to; leave --mlflow out"
        )
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    uri = store_uri(settings.tracking_uri, settings.logdir)
    mlflow.set_tracking_uri(uri)
    try:
        status = mlflow.tracking.MlflowClient(uri).get_run(run).info.status
        if status == "RUNNING":
            raise UserError(
                f"MLflow's run {run} of {settings.logdir} has not ended; log the model when it has"
            )
        mlflow.start_run(run)
        try:
            _log(mlflow, model, saved_model)
        finally:
            mlflow.end_run(status)
    except mlflow.exceptions.MlflowException as error:
        raise UserError(
            f"the model cannot be logged to MLflow's run {run} ({str(error).splitlines()[0]}); "
            "leave --mlflow out, or repair the store of --tracking_uri"
        ) from error
    return f"runs:/{run}/{_NAME}"


def _log(mlflow: Any, model: Model, saved_model: str) -> None:
    schema, spec = mlflow.types.Schema, mlflow.types.TensorSpec

    def described(tensors: Any) -> Any:
        shapes = {name: [size or -1 for size in t.shape.as_list()] for name, t in tensors.items()}
        return schema([spec(_dtype(tensors[name]), shapes[name], name) for name in sorted(shapes)])

    log_model = mlflow.pyfunc.log_model
    known = inspect.signature(log_model).parameters
    # The first names are those of MLflow 3 and of 2.13 and later.
    options = {
        "name" if "name" in known else "artifact_path": _NAME,
        "code_paths" if "code_paths" in known else "code_path": [
            str(Path(__file__).with_name(f"{_LOADER}.py"))
        ],
    }
    log_model(
        loader_module=_LOADER,
        data_path=saved_model,
        signature=mlflow.models.ModelSignature(described(model.inputs), described(model.outputs)),
        input_example={name: _example(model, name) for name in model.inputs},
        pip_requirements=[f"tensorflow=={version()}", f"numpy=={np.__version__}"],
        **options,
    )


def _dtype(tensor: Any) -> Any:
    found = np.dtype(tensor.dtype.as_numpy_dtype)
    return np.dtype(str) if found.hasobject else found


def _example(model: Model, name: str) -> np.ndarray:
    """Returns one row, of the training data where these are arrays."""
    if name in model.example:
        return model.example[name]
    tensor = model.inputs[name]
    return np.zeros([size or 1 for size in tensor.shape.as_list()], _dtype(tensor))
