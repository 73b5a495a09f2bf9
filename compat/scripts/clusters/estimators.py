"""Provides `tf.estimator` to scripts, with the servers and sessions of this package."""

from __future__ import annotations

# Imported from the module: if tensorflow-estimator is missing, `compat.estimator` raises another
# error.
from compat.estimator.package import make_tasks_by, names
from compat.scripts.clusters import distributed

__all__ = ["names"]

make_tasks_by(
    distributed.Server, distributed.train_MonitoredTrainingSession, distributed.departures
)
