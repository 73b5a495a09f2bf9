"""Loads the package tensorflow-estimator, also on releases that it does not support."""

from __future__ import annotations

import importlib
import os
import types
from typing import Any, Callable

from compat._tensorflow import embeddings, internals, saving, startup
from compat.estimator import completion, corrections, of_keras


def _load() -> Any:
    # TensorFlow reads it at import. `tf1.layers` and canned estimators need Keras 2.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    with startup.without_notes():
        internals.silence_deprecations()
        internals.put_back()
        embeddings.gather_rows()
        saving.read_steps_when_due()
    return importlib.import_module("tensorflow_estimator._api.v1.estimator")


names: Any = _load()  # `tf.compat.v1.estimator`.
_INSIDE = "tensorflow_estimator.python.estimator."
estimator: Any = importlib.import_module(_INSIDE + "estimator")
training: Any = importlib.import_module(_INSIDE + "training")
run_config: Any = importlib.import_module(_INSIDE + "run_config")
of_keras.accept(_INSIDE)
corrections.correct(estimator, importlib.import_module(_INSIDE + "exporter"))


def with_globals(function: Any, **replaced: Any) -> Callable[..., Any]:
    """Returns a copy of a function of the package with some globals of its module replaced.

    The module is unchanged, because before 2.16 the program may also use `tf.estimator`.
    """
    names = {**function.__globals__, **replaced}
    copy = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def make_tasks_by(server: Any, session: Any, departures: Callable[[], Any]) -> None:
    """Makes the package use other servers and monitored sessions for the tasks of a cluster.

    Args:
      server: Called as `tf.train.Server`.
      session: Called as `tf.train.MonitoredTrainingSession`.
      departures: Called once the server is created; returns the task's `Departures`, or None.
    """

    def within(module: Any, **replaced: Any) -> Any:
        return types.SimpleNamespace(**{**vars(module), **replaced})

    def started(self: Any, config: Any) -> Any:
        server_of_task, departing = start(self, config), departures()
        if departing is not None:
            departing.enter()  # The package then delays a worker for seconds.
        return server_of_task

    start = training._TrainingExecutor._start_std_server
    training._TrainingExecutor._start_std_server = started
    training.server_lib = within(training.server_lib, Server=server)
    estimator.training = within(estimator.training, MonitoredTrainingSession=session)


completion.mark_ends(training._TrainingExecutor, with_globals)
