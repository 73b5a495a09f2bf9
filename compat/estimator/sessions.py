"""The sessions of an estimator that trains: `compat.MonitoredTrainingSession` on either runtime."""

from __future__ import annotations

import types
from typing import Any, Callable

from compat._tensorflow import tf1
from compat.checkpoint.saver import Saver
from compat.estimator import package


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
