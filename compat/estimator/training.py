"""Makes estimators train on the runtime of this process."""

from __future__ import annotations

import functools
from typing import Any

from compat.estimator import lifted
from compat.estimator.corrections import warned
from compat.estimator.lifted import train_with_spec
from compat.runtime.interface import current_runtime
from compat.runtime.monitored import MonitoredTrainingSession


class _Trained:
    """A mixin for estimators of the package, which trains on the runtime of this process.

    Attributes:
      workers_publish: Whether each worker stores the dataset of its input function for the chief.
    """

    workers_publish = False
    _train_distribution: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        current_runtime()  # Selects the runtime before there is a graph.
        super().__init__(*args, **kwargs)

    def _train_model(self, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
        if current_runtime().hands_out:
            return warned(lifted.train(self, input_fn, hooks, saving_listeners))
        return super()._train_model(input_fn, hooks, saving_listeners)  # type: ignore[misc]

    def _train_with_estimator_spec(self, spec: Any, *args: Any) -> Any:
        if self._train_distribution:
            return super()._train_with_estimator_spec(spec, *args)  # type: ignore[misc]
        return train_with_spec(self, MonitoredTrainingSession, spec, *args)


@functools.lru_cache(maxsize=None)
def trained(kind: Any) -> Any:
    """Returns a subclass of an estimator of the package that trains on either runtime."""
    doc = f"`tf.estimator.{kind.__name__}`, which trains by the runtime of this process."
    return type(kind.__name__, (_Trained, kind), {"__doc__": doc, "__module__": __name__})
