"""Reads the cluster and the task from flags, TF_CONFIG, or the old server's specification.

Example:
  >>> cluster = cluster_from_hosts("localhost:2222", "localhost:2223,localhost:2224")
  >>> cluster.task_address("worker", 1)
  'localhost:2224'
"""

from __future__ import annotations

import json
import reprlib
from typing import Any, Mapping, Sequence

from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError

_TF_CONFIG_EXAMPLE = (
    '{"cluster": {"ps": ["h0:2222"], "worker": ["h1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
_JSON_NAMES = {dict: "an object", int: "a whole number", str: "text"}
_TASK_TYPES = ("chief", "evaluator", "master", "ps", "worker")


def cluster_from_hosts(
    ps_hosts: str | Sequence[str] | None, worker_hosts: str | Sequence[str]
) -> ClusterSpec:
    """Returns the cluster of the flags --ps_hosts and --worker_hosts; None means no such job."""
    jobs = {}
    for job, hosts in (("ps", ps_hosts), ("worker", worker_hosts)):
        if hosts is None:
            continue
        if not hosts or isinstance(hosts, str) and not hosts.strip():
            raise UserError(f"--{job}_hosts is empty; write --{job}_hosts=host:port,host:port")
        jobs[job] = [h.strip() for h in hosts.split(",")] if isinstance(hosts, str) else list(hosts)
    return ClusterSpec(jobs)


def parse_cluster_spec(text: str) -> ClusterSpec:
    """Returns the cluster of the old server's flag: "worker|host:port;host:port,ps|host:port"."""
    jobs: dict[str, list[str]] = {}
    for part in text.split(","):
        job, bar, hosts = part.strip().partition("|")
        if not bar:
            raise UserError(f"{part!r} in cluster spec {text!r} has no '|'; write worker|host:port")
        if job in jobs:
            raise UserError(f"job {job!r} is twice in cluster spec {text!r}; join its hosts by ';'")
        jobs[job] = [host.strip() for host in hosts.split(";")]
    return ClusterSpec(jobs)


def cluster_from_tf_config(text: str) -> tuple[ClusterSpec, Task]:
    """Returns the cluster and this process's task of the environment variable TF_CONFIG.

    A job "master" is the "chief" of TensorFlow 1.x by its older name. An "evaluator" is taken out
    of the cluster, where a coordinator would wait for it for ever; it may still be the task.
    """
    try:
        return _parse_tf_config(text)
    except UserError as error:
        raise UserError(f"TF_CONFIG: {error}; a right one is {_TF_CONFIG_EXAMPLE}") from None


def _parse_tf_config(text: str) -> tuple[ClusterSpec, Task]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:  # The latter of what lies too deep in itself.
        raise UserError(f"{reprlib.repr(text)} is no JSON ({error})") from None
    jobs = _member(config, "cluster", dict)
    place = _member(config, "task", dict)
    job, index = _member(place, "type", str), _member(place, "index", int)
    if job not in _TASK_TYPES:
        raise UserError(f"task type {job!r} is unknown, expected one of {', '.join(_TASK_TYPES)}")
    if "master" in jobs and "chief" in jobs:
        raise UserError("the cluster has both a master and a chief, expected one of them")
    if "master" in jobs:
        jobs["chief"] = jobs.pop("master")
    task = Task("chief" if job == "master" else job, index)
    cluster = ClusterSpec(jobs)
    if task.job in cluster.jobs or task.job != "evaluator":
        cluster.address_of(task)
    elif task.index < 0:
        raise UserError(f"task index {task.index} is negative, expected 0 or more")
    jobs.pop("evaluator", None)
    return ClusterSpec(jobs), task


def _member(mapping: Any, key: str, kind: type) -> Any:
    """Returns the value of `key`, of just the type `kind`: JSON's true is an int to isinstance."""
    if not isinstance(mapping, Mapping):
        raise UserError(f"{reprlib.repr(mapping)} is no object with a key {key!r}")
    if key not in mapping:
        raise UserError(f"the key {key!r} is missing in {reprlib.repr(mapping)}")
    if type(mapping[key]) is not kind:
        raise UserError(f"{key!r} is {reprlib.repr(mapping[key])}, expected {_JSON_NAMES[kind]}")
    return mapping[key]
