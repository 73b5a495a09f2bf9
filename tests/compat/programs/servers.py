"""Servers that are made as TensorFlow's are, and clusters that TensorFlow's own classes take."""

from __future__ import annotations

import json
import sys
from typing import Any

import compat
from compat import tf, tf1
from compat.liveness.diagnosis import peer_error


def run_on(target: str) -> float:
    """Returns what a session on a server computes."""
    with tf1.Graph().as_default(), tf1.Session(target) as session:
        return float(session.run(tf1.constant(20.0) + tf1.constant(22.0)))


def kind(function: Any) -> list[str]:
    """Returns which classes of errors an error that is raised is of."""
    try:
        function()
    except Exception as error:
        kinds = [compat.UserError, ValueError, TypeError]
        kinds += [tf1.errors.InvalidArgumentError, tf1.errors.UnknownError]
        return [k.__name__ for k in kinds if isinstance(error, k)]
    return []


def main() -> None:
    compat.select_runtime(json.loads(sys.argv[1])["runtime"])
    jobs = {"ps": ["localhost:1"], "worker": {1: "localhost:2", 3: "localhost:3"}}
    cluster = compat.ClusterSpec(jobs)
    theirs = tf1.train.ClusterSpec(jobs)
    local = compat.Server.create_local_server(tf1.ConfigProto(intra_op_parallelism_threads=1))
    definition = tf1.train.ServerDef(
        cluster=compat.ClusterSpec({"local": {37: "localhost:0"}}).as_cluster_def(),
        job_name="local",
        task_index=37,
        protocol="grpc",
    )
    defined = compat.Server(definition, config=tf1.ConfigProto(inter_op_parallelism_threads=2))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster)
    cancelled = tf1.errors.CancelledError(None, None, "the program closed its queue")
    own = compat.ClusterSpec({"local": [defined.address]})
    restarted = tf1.errors.AbortedError(None, None, "the worker was restarted")
    print(
        json.dumps(
            {
                "is theirs": isinstance(cluster, tf1.train.ClusterSpec),
                "is ours": isinstance(cluster, compat.ClusterSpec),
                "taken": tf1.train.ClusterSpec(cluster).as_dict() == theirs.as_dict(),
                "message": cluster.as_cluster_def() == theirs.as_cluster_def(),
                "back": compat.ClusterSpec(cluster.as_cluster_def()) == cluster == theirs,
                "resolved": resolver.cluster_spec().as_dict() == theirs.as_dict(),
                "local": run_on(local.target),
                "local device": local.task.name,
                "threads": local.server_def.default_session_config.intra_op_parallelism_threads,
                "defined": run_on(defined.target),
                "defined device": defined.task.name,
                "defined threads": (
                    defined.server_def.default_session_config.inter_op_parallelism_threads
                ),
                "port": defined.address.rpartition(":")[2] not in ("", "0"),
                "no job": kind(lambda: compat.Server(cluster)),
                "evaluator": kind(lambda: compat.Server(cluster, "evaluator", 0)),
                "not a cluster": kind(lambda: compat.Server("localhost:1")),
                "no port": kind(lambda: compat.Server({"local": ["localhost"]})),
                "port in use": kind(lambda: compat.Server({"local": [local.address]})),
                "own error": str(peer_error(cancelled, own)),
                "restarted peer": str(peer_error(restarted, own)).split(" (")[0],
            }
        )
    )


if __name__ == "__main__":
    main()
