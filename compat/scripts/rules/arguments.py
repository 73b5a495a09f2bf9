"""Arguments of the classes for training that TensorFlow 1.0 no longer has; they are ignored."""

from __future__ import annotations

from compat.scripts.rules.findings import SERVED
from compat.scripts.rules.forms import Form, Forms, finder
from compat.scripts.rules.rule import Rule


def _ignored(name: str) -> tuple[Form]:
    return (Form("arguments", SERVED, f"took {name}=; compat run ignores it", keywords={name: ""}),)


FORMS: Forms = {
    "train.Supervisor": _ignored("graph_def"),
    "train.SyncReplicasOptimizer": _ignored("replica_id"),
}
RULE = Rule(
    "arguments",
    "1.0",
    "arguments that are ignored",
    'tf.train.Supervisor(logdir="logs", graph_def=x)',
    find=finder(FORMS),
)
