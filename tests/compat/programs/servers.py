"""Servers that are made as TensorFlow's are, and clusters that TensorFlow's own classes take."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
from typing import Any

import compat
from compat import tf, tf1
from compat.cluster.liveness.diagnosis import peer_error


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


class Hook(compat.SessionRunHook):
    """A hook of a program."""


STORAGE = "gs://bucket/data: Error executing an HTTP request: HTTP response code 503"
CURL = "libcurl code 56, Recv failure: Connection reset by peer when reading s3://bucket/data"
REMOTE = "From /job:local/replica:0/task:0:\n"


def chosen_side_by_side(runtime: str) -> int:
    """Returns how many runtimes threads get that choose one at the same time."""
    start, found = threading.Barrier(4), []

    def choose() -> None:
        start.wait(60)
        found.append(compat.select_runtime(runtime))

    threads = [threading.Thread(target=choose) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(set(map(id, found))) if len(found) == 4 else 0


def started_by_its_strategy() -> str:
    """Starts the server of a coordinator, which has none of its own."""
    jobs = {"chief": ["localhost:1"], "ps": ["localhost:2"], "worker": ["localhost:3"]}
    server = compat.Server(jobs, "chief", 0, start=False)
    server.start()
    server.diagnose(compat.PeerError("lost"))  # So no end is announced to the others.
    return server.state.value


def main() -> None:
    runtime = json.loads(sys.argv[1])["runtime"]
    runtimes = chosen_side_by_side(runtime)
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

    def lost_peer(text: str) -> str:
        found = peer_error(tf1.errors.UnavailableError(None, None, text), own)
        return str(found).partition("; ")[0].replace(defined.address, "ADDRESS")

    restarted = tf1.errors.AbortedError(None, None, "the worker was restarted")
    print(
        json.dumps(
            {
                "is theirs": isinstance(cluster, tf1.train.ClusterSpec),
                "is ours": isinstance(cluster, compat.ClusterSpec),
                "taken": tf1.train.ClusterSpec(cluster).as_dict() == theirs.as_dict(),
                "message": cluster.as_cluster_def() == theirs.as_cluster_def(),
                "returned": compat.ClusterSpec(cluster.as_cluster_def()) == cluster == theirs,
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
                "storage": [lost_peer(text) for text in (STORAGE, REMOTE + STORAGE, CURL, "why")],
                "back": [lost_peer(text) for text in ("Socket closed", REMOTE + "OS Error")],
                "runtimes": runtimes,
                "hooks": [
                    issubclass(Hook, compat.SessionRunHook),
                    issubclass(Hook, compat.StopAtStepHook),
                    issubclass(compat.StopAtStepHook, compat.SessionRunHook),
                    isinstance(Hook(), compat.SessionRunHook),
                ],
                "copies": [
                    type(each).__name__ + str(each == cluster)
                    for each in (pickle.loads(pickle.dumps(cluster)), copy.deepcopy(cluster))
                ],
                "coordinator": started_by_its_strategy() if runtime == "modern" else "retrying",
                "restarted peer": str(peer_error(restarted, own)).split(" (")[0],
            }
        )
    )


if __name__ == "__main__":
    main()
