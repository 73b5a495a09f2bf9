"""Logs a SavedModel to a run of MLflow, as a Python model with a signature and an example."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from compat._tensorflow import version
from compat.errors import UserError

NAME = "model"
_LOADER = "mlflow_loader"


class Tensor(NamedTuple):
    """An input or an output of a model: its type, and its shape with None for any size."""

    dtype: Any  # A NumPy dtype.
    shape: Sequence[Any]


def log(
    uri: str,
    run: str,
    saved_model: str,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    example: Mapping[str, np.ndarray],
) -> str:
    """Logs a SavedModel with its signature and an input example; returns its URI.

    Args:
      uri: The URI of the store, as `stores.store_uri` returns it.
      run: The ID of the run, which has ended.
      saved_model: The folder of the SavedModel.
      inputs: The inputs of its signature `serving_default`, or of its only signature, by name.
      outputs: The outputs of the same signature, by name.
      example: A row of inputs by name; missing ones are zeros.

    Raises:
      UserError: The run has not ended, or the store fails.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(uri)
    try:
        with _ended(mlflow, uri, run):
            _log(mlflow, saved_model, inputs, outputs, example)
    except mlflow.exceptions.MlflowException as error:
        raise UserError(
            f"the model cannot be logged to MLflow's run {run} ({str(error).splitlines()[0]}); "
            "log none, or repair the tracking store"
        ) from error
    return f"runs:/{run}/{NAME}"


@contextlib.contextmanager
def _ended(mlflow: Any, uri: str, run: str) -> Iterator[None]:
    """Makes an ended run the active one, and restores its status on exit."""
    status = mlflow.tracking.MlflowClient(uri).get_run(run).info.status
    if status == "RUNNING":
        raise UserError(f"MLflow's run {run} has not ended; log the model when it has")
    mlflow.start_run(run)
    try:
        yield
    finally:
        mlflow.end_run(status)


def _log(mlflow: Any, saved_model: str, inputs: Any, outputs: Any, example: Any) -> None:
    schema, spec = mlflow.types.Schema, mlflow.types.TensorSpec

    def described(tensors: Mapping[str, Tensor]) -> Any:
        shapes = {n: [-1 if s is None else s for s in t.shape] for n, t in tensors.items()}
        return schema([spec(_dtype(tensors[name]), shapes[name], name) for name in sorted(shapes)])

    log_model = mlflow.pyfunc.log_model
    known = inspect.signature(log_model).parameters
    # The first names are those of MLflow 3 (`name`), and of 2.13 and later (`code_paths`).
    options = {
        "name" if "name" in known else "artifact_path": NAME,
        "code_paths" if "code_paths" in known else "code_path": [
            str(Path(__file__).with_name(f"{_LOADER}.py"))
        ],
    }
    zeros = {
        name: np.zeros([s or 1 for s in tensor.shape], _dtype(tensor))
        for name, tensor in inputs.items()
    }
    log_model(
        loader_module=_LOADER,
        data_path=saved_model,
        signature=mlflow.models.ModelSignature(described(inputs), described(outputs)),
        input_example={name: example.get(name, zeros[name]) for name in inputs},
        pip_requirements=[f"tensorflow=={version()}", f"numpy=={np.__version__}"],
        **options,
    )


def _dtype(tensor: Tensor) -> Any:
    dtype = np.dtype(tensor.dtype)
    return np.dtype(str) if dtype.hasobject else dtype
