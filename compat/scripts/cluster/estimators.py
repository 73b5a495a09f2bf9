"""`tf.estimator` of scripts: tasks whose servers and sessions are those of others in a cluster."""

from __future__ import annotations

from compat.estimator import package
from compat.scripts.cluster import distributed

package.make_tasks_by(
    distributed.Server, distributed.train_MonitoredTrainingSession, distributed.departures
)
names = package.names
