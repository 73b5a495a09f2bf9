"""Trains an estimator on the modern runtime, which runs its model function as the training step."""

from __future__ import annotations

import types
from typing import Any, Callable, Mapping

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.estimator import package, worker_inputs
from compat.estimator.lifted_inputs import Inputs
from compat.estimator.package import names
from compat.runtime.device_setter import replica_device_setter
from compat.runtime.interface import current_runtime, device, get_or_create_global_step, step
from compat.runtime.monitored import MonitoredTrainingSession
from compat.runtime.saver import Saver

_TRAIN = names.ModeKeys.TRAIN


def train(estimator: Any, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
    """Trains until a hook stops it or the data ends; returns the last loss.

    Raises:
      UserError: The input function cannot be read by workers, or the configuration has a strategy.
    """
    config, runtime = estimator.config, current_runtime()
    if estimator._train_distribution:
        raise UserError(
            f"train_distribute={estimator._train_distribution!r} distributes a program that the "
            "modern runtime distributes; leave it out, or use compat.select_runtime('legacy')"
        )
    with tf1.Graph().as_default():
        tf1.set_random_seed(config.tf_random_seed)
        setter = config.device_fn
        if setter is None and runtime.server is not None:
            setter = replica_device_setter(cluster=runtime.server.cluster)
        inputs = inputs_of(estimator, input_fn)
        build = _Build(estimator, inputs)
        with device(setter):
            step_variable = get_or_create_global_step()
            dataset = inputs.dataset
            if estimator.workers_publish:
                dataset = worker_inputs.of_workers(runtime.server, inputs)  # type: ignore[arg-type]
            train_step: Any = step(build, [], dataset=dataset)
        spec = types.SimpleNamespace(**{**build.spec._asdict(), "train_op": train_step})
        return train_with_spec(
            estimator, _Session, spec, [], hooks, step_variable, saving_listeners
        )


def inputs_of(estimator: Any, input_fn: Any) -> Inputs:
    """Calls an estimator's `input_fn` for training; returns the inputs that it defines."""
    return Inputs(lambda: estimator._call_input_fn(input_fn, _TRAIN))


_LOSS = "estimator/loss"


class _Build:
    """The function of the step: calls the model function, and keeps the `EstimatorSpec`."""

    spec: Any = None  # The `EstimatorSpec` of the model function.

    def __init__(self, estimator: Any, inputs: Inputs) -> None:
        self._estimator, self._inputs = estimator, inputs

    def __call__(self, *elements: Any) -> Mapping[str, Any]:
        estimator = self._estimator
        features, labels = self._inputs.tensors(*elements)
        spec = self.spec = estimator._call_model_fn(features, labels, _TRAIN, estimator.config)
        summaries = tf1.get_collection(tf1.GraphKeys.SUMMARIES)
        if not any(summary.op.name == "loss" for summary in summaries):
            tf1.summary.scalar("loss", spec.loss)
        return {_LOSS: spec.loss, "train_op": tf.group(spec.train_op)}


class _Session:
    """The session in which tensorflow-estimator runs `[train_op, loss]`.

    It runs the step alone, and takes the loss from the step's outputs. Fetching the loss separately
    would make the workers run one after another.
    """

    def __init__(self, hooks: Any, config: Any, **kwargs: Any) -> None:
        del config  # The `ConfigProto`, which only TensorFlow's session uses.
        # This hook would fetch the loss of each step, so the workers would run one after another.
        self._nan = [hook for hook in hooks if isinstance(hook, tf1.train.NanTensorHook)]
        hooks = [hook for hook in hooks if hook not in self._nan]
        self._session = MonitoredTrainingSession(hooks=hooks, **kwargs)

    def __enter__(self) -> _Session:
        self._session.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        return self._session.__exit__(kind, error, trace)

    def should_stop(self) -> bool:
        """Whether a hook, the end of the data or a signal has ended the run."""
        return bool(self._session.should_stop())

    def run(self, fetches: Any) -> tuple[None, float]:
        """Runs the step; returns its loss, or the loss of a step that was scheduled earlier."""
        loss = self._session.run(fetches[0])[_LOSS]
        if self._nan and np.isnan(loss):
            raise tf1.train.NanLossDuringTrainingError
        return None, loss


def train_with_spec(
    estimator: Any, session: Callable[..., Any], spec: Any, *args: Any, **replaced: Any
) -> Any:
    """Trains as tensorflow-estimator does after it has called the model function.

    `session` replaces `MonitoredTrainingSession`; `replaced` has other names of the package's
    module and their replacements.
    """
    config, savers = estimator.config, tf1.get_collection_ref(tf1.GraphKeys.SAVERS)
    if not (spec.scaffold.saver or savers):
        hours = config.keep_checkpoint_every_n_hours
        savers.append(
            Saver(
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=hours,
                defer_build=True,
                save_relative_paths=True,
            )
        )
    method = package.estimator.Estimator._train_with_estimator_spec
    module = method.__globals__["training"]
    ours = types.SimpleNamespace(**{**vars(module), "MonitoredTrainingSession": session})
    return package.with_globals(method, training=ours, **replaced)(estimator, spec, *args)
