"""`tf.estimator` of scripts: tasks whose servers and sessions are those of others in a cluster."""

from __future__ import annotations

# From the module: without the package that it needs, `compat.estimator` has another error.
from compat.estimator.package import make_tasks_by, names
from compat.scripts.clusters import distributed

__all__ = ["names"]

make_tasks_by(
    distributed.Server, distributed.train_MonitoredTrainingSession, distributed.departures
)
