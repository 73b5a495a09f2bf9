"""Trains an estimator on the modern runtime: its model function, lifted into a step."""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any, Callable, Iterator, Mapping

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.estimator import package, worker_inputs
from compat.estimator.lifted_inputs import Inputs
from compat.estimator.package import names
from compat.liveness.watchdog import submit
from compat.runtime.device_setter import replica_device_setter
from compat.runtime.interface import current_runtime, device, get_or_create_global_step, step
from compat.runtime.monitored import MonitoredTrainingSession
from compat.runtime.saver import Saver

_TRAIN = names.ModeKeys.TRAIN


def train(estimator: Any, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
    """Trains until a hook stops it or the data ends; returns the last loss.

    Raises:
      UserError: the input function, the model function or the configuration needs a graph or a
        session of TensorFlow, which the modern runtime does not have.
    """
    call = functools.partial(_train, estimator, input_fn, hooks, saving_listeners)
    # The package calls in graph mode, and another thread is in no graph.
    return call() if tf.executing_eagerly() else submit(call).result()


def _train(estimator: Any, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
    config, runtime = estimator.config, current_runtime()
    for name, given in (
        ("warm_start_from", estimator._warm_start_settings),
        ("train_distribute", estimator._train_distribution),
    ):
        if given:
            raise UserError(
                f"{name}={given!r} needs a graph of TensorFlow's, which the modern runtime does "
                "not have; use compat.select_runtime('legacy')"
            )
    runtime.clear()  # Each call of `train` builds its program anew, and resumes.
    tf1.set_random_seed(config.tf_random_seed)
    setter = config.device_fn
    if setter is None and runtime.server is not None:
        setter = replica_device_setter(cluster=runtime.server.cluster)
    inputs = inputs_of(estimator, input_fn)
    build = _Build(estimator, inputs, hooks)
    with device(setter), _hashable():
        get_or_create_global_step()
        dataset = inputs.dataset
        if estimator.workers_publish and runtime.coordinator:
            dataset = worker_inputs.of_workers(runtime.server, inputs)  # type: ignore[arg-type]
        made: Any = step(build, [], dataset=dataset)
        if build.has_more:
            made.always(_LOSS, _TRAIN_OP)
    graph: Any = runtime.hook_graph  # type: ignore[attr-defined]
    graph.add_variables(runtime.variables(), runtime.global_step())
    fetched = made.tensors
    with graph.as_default():
        spec = types.SimpleNamespace(
            loss=fetched[_LOSS],
            train_op=made,
            scaffold=build.spec.scaffold,
            training_hooks=[build.refetched(hook, fetched) for hook in build.spec.training_hooks],
            training_chief_hooks=[
                build.refetched(hook, fetched) for hook in build.spec.training_chief_hooks
            ],
        )
        no_summary = types.SimpleNamespace(scalar=lambda *args: None)  # The step has it.
        args: Any = ([], hooks, tf1.train.get_global_step(), saving_listeners)
        return train_with_spec(estimator, _Session, spec, *args, summary=no_summary)


def inputs_of(estimator: Any, input_fn: Any) -> Inputs:
    """Returns what steps of this task would read."""
    return Inputs(lambda: estimator._call_input_fn(input_fn, _TRAIN))


_LOSS = "estimator/loss"
_TRAIN_OP = "train_op"


@contextlib.contextmanager
def _hashable() -> Iterator[None]:
    """Lets tensors and variables be keys, as the package and model functions of 1.x expect."""
    try:
        hash(tf.constant(0))
        enabled = False
    except TypeError:
        enabled = True
    tf1.disable_tensor_equality()
    try:
        yield
    finally:
        if enabled:
            tf1.enable_tensor_equality()


class _Build:
    """The function of the step: calls the model function, and keeps the `EstimatorSpec`."""

    spec: Any = None  # What the model function has returned.
    has_more = False

    def __init__(self, estimator: Any, inputs: Inputs, hooks: Any) -> None:
        self._estimator, self._inputs, self._hooks = estimator, inputs, hooks
        self._named: dict[str, str] = {}  # What hooks fetch: names of values by those of tensors.

    def __call__(self, *elements: Any) -> Mapping[str, Any]:
        estimator = self._estimator
        features, labels = self._inputs.tensors(*elements)
        spec = self.spec = estimator._call_model_fn(features, labels, _TRAIN, estimator.config)
        values = {_LOSS: spec.loss, _TRAIN_OP: tf.group(spec.train_op)}
        graph = self._graph = tf1.get_default_graph()
        summaries = graph.get_collection(tf1.GraphKeys.SUMMARIES)
        if not any(summary.op.name == "loss" for summary in summaries):
            tf1.summary.scalar("loss", spec.loss)
        for hook in (*spec.training_hooks, *spec.training_chief_hooks):
            for tensor in _kept(hook, lambda value: _is_tensor(value, graph)):
                self._named[tensor.name] = name = f"hook/{tensor.op.name}_{tensor.value_index}"
                values[name] = tensor
        for hook in (*self._hooks, *spec.training_hooks, *spec.training_chief_hooks):
            for name in _kept(hook, lambda value: isinstance(value, str)):
                with contextlib.suppress(KeyError, ValueError):  # Most are not names of tensors.
                    tensor = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
                    values.setdefault(tensor.op.name, tensor.op.outputs[0])
        self.has_more = len(values) > 2  # Such as a streaming metric, which hooks alone fetch.
        return values

    def refetched(self, hook: Any, fetched: Mapping[str, Any]) -> Any:
        """Makes a hook of the model function fetch what the step returns."""

        def replaced(value: Any) -> Any:
            if _is_tensor(value, self._graph):
                return fetched[self._named[value.name]]
            return value

        for name, value in vars(hook).items():
            setattr(hook, name, _mapped(replaced, value))
        return hook


def _is_tensor(value: Any, graph: Any) -> bool:
    return tf.is_tensor(value) and getattr(value, "graph", None) is graph


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Applies a function to a value, or to those of a list, tuple or dict."""
    if type(value) in (list, tuple):
        return type(value)(_mapped(function, each) for each in value)
    if isinstance(value, dict):
        return type(value)((key, _mapped(function, each)) for key, each in value.items())
    return function(value)


def _kept(hook: Any, is_wanted: Callable[[Any], bool]) -> list[Any]:
    """Returns what a hook keeps of that which it may fetch: tensors, and their names."""
    found: list[Any] = []
    for value in vars(hook).values():
        _mapped(lambda each: found.append(each) if is_wanted(each) else None, value)
    return found


class _Session:
    """A session whose `run` keeps all workers busy: the package runs `[train_op, loss]`."""

    def __init__(self, hooks: Any, config: Any, **kwargs: Any) -> None:
        del config  # Of a session of TensorFlow's.
        # It would fetch the loss of each step, and so make the workers take turns.
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
        """Runs the step; returns the loss of it, or of one that was scheduled earlier."""
        loss = self._session.run(fetches[0])[_LOSS]
        if self._nan and np.isnan(loss):
            raise tf1.train.NanLossDuringTrainingError
        return None, loss


def train_with_spec(
    estimator: Any, session: Callable[..., Any], spec: Any, *args: Any, **replaced: Any
) -> Any:
    """Does what the package does once the graph is built, in sessions of `session`.

    What is `replaced` are further names of the package's module.
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
