"""Writes what `launch --dry_run` prints: lines for a shell, or a manifest for Kubernetes.

A JobSet gives each pod an index, and a name by which the others reach it. So TF_CONFIG and flags
can be written into the manifest. A TrainJob of Kubeflow Trainer runs such a JobSet, which is part
of its TrainingRuntime; Trainer's policy for plain ML sets no environment variables. A TFJob is for
Trainer's predecessor, the training operator, which sets TF_CONFIG and nothing else.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import yaml

from compat.cluster.environment import tf_config
from compat.cluster.spec import Task
from compat.errors import UserError
from compat.processes.group import Command
from compat.processes.local_cluster import commands
from compat.scripts.clusters.task_arguments import Spelling

NAME = "training"  # Also the label by which the NetworkPolicy in deploy/ selects pods.
_PORT = 2222
_INDEX = "$(JOB_COMPLETION_INDEX)"  # Kubernetes replaces it in arguments and environment.
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_REPLICAS = {"chief": "Chief", "evaluator": "Evaluator", "ps": "PS", "worker": "Worker"}
_ENDLESS = 2**31 - 1
_TRAINER = "trainer.kubeflow.org"
_STEP = {f"{_TRAINER}/trainjob-ancestor-step": "trainer"}


def shell(commands: Sequence[Command], hosts: Mapping[str, Sequence[str]]) -> str:
    """Returns a comment and a line of shell for each task: environment, program and arguments.

    The comment has the name of the task and, unless the task is an evaluator, its address.
    """
    lines = []
    for command in commands:
        job, _, index = command.name.partition(" ")
        at = f" at {hosts[job][int(index)]}" if job in hosts else ""
        env = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
        lines += [f"# {command.name}{at}", " ".join([*env, *map(shlex.quote, command.argv)])]
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class Pods:
    """The pods that a manifest starts, one for each task."""

    command: Sequence[str]
    counts: Mapping[str, int]  # The number of tasks by job, without an evaluator.
    how: Spelling  # The arguments and variables that tell each task its job and index.
    image: str
    evaluator: bool = False
    max_restarts: int = 0  # The number of pods of a job that may fail before the job fails.

    @property
    def replicas(self) -> dict[str, int]:
        """The number of tasks of each job."""
        return {**self.counts, **({"evaluator": 1} if self.evaluator else {})}

    def template(
        self, job: str, arguments: Sequence[str] = (), env: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """Returns the template of a pod; the operator of TFJobs requires its container's name."""
        # Kubernetes replaces $(NAME) in a command, unless the dollar sign is doubled.
        words = [*(word.replace("$(", "$$(") for word in self.command), *arguments]
        (local,) = commands({job: [""]}, lambda task: words)
        plain = [{"name": name, "value": value} for name, value in local.env.items()]
        container = {
            "name": "tensorflow",
            "image": self.image,
            "command": list(local.argv),
            "env": [*env, *plain],
            "ports": [{"name": "tfjob-port", "containerPort": _PORT}],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        spec = {"automountServiceAccountToken": False, "containers": [container]}
        return {"metadata": {"labels": {"app": NAME}}, "spec": spec}


def job_set(pods: Pods) -> str:
    """Returns a JobSet; it succeeds when the chief or, without a chief, all workers succeed."""
    return _document("jobset.x-k8s.io/v1alpha2", "JobSet", _job_set(pods))


def train_job(pods: Pods) -> str:
    """Returns a TrainJob and its TrainingRuntime, which contains the JobSet."""
    body = _job_set(pods)
    nodes = "worker" if "worker" in pods.counts else "chief"
    for job in body["replicatedJobs"]:
        if job["name"] == nodes:  # Trainer requires this label and name of what it counts as nodes.
            job["template"] = {"metadata": {"labels": _STEP}, **job["template"]}
            job["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = "node"
    runtime = {"mlPolicy": {"numNodes": pods.counts[nodes]}, "template": {"spec": body}}
    reference = {"apiGroup": _TRAINER, "kind": "TrainingRuntime", "name": NAME}
    version = f"{_TRAINER}/v1alpha1"
    documents = (
        _document(version, "TrainingRuntime", runtime),
        _document(version, "TrainJob", {"runtimeRef": reference}),
    )
    return "---\n".join(documents)


def _job_set(pods: Pods) -> dict[str, Any]:
    hosts = {
        job: [f"{NAME}-{job}-0-{index}.{NAME}:{_PORT}" for index in range(count)]
        for job, count in pods.counts.items()
    }
    jobs = []
    for job, count in pods.replicas.items():
        # The index is a number in JSON, so its placeholder has no quotes.
        config = tf_config(hosts, Task(job, 0)).replace('"index": 0', f'"index": {_INDEX}')
        env: list[dict[str, Any]] = [
            {
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": {"fieldRef": {"fieldPath": _INDEX_FIELD}},
            },
            {"name": "TF_CONFIG", "value": config},
        ]
        pod = pods.template(job, pods.how.words(job, _INDEX, hosts), env)
        spec: dict[str, Any] = {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": pods.max_restarts,
            "template": pod,
        }
        if job == "evaluator":  # Its failure ends no other task.
            spec["backoffLimit"] = _ENDLESS
            pod["spec"]["restartPolicy"] = "OnFailure"
        else:
            codes = {"operator": "In", "values": [UserError.exit_code]}
            spec["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
            pod["spec"]["restartPolicy"] = "Never"  # A podFailurePolicy requires it.
        jobs.append({"name": job, "template": {"spec": spec}})
    trainer = "chief" if "chief" in pods.counts else "worker"
    success = {"operator": "All", "targetReplicatedJobs": [trainer]}
    return {"successPolicy": success, "replicatedJobs": jobs}


def tf_job(pods: Pods) -> str:
    """Returns a TFJob; raises a `UserError` if tasks are to get arguments of their own.

    All pods of a job have one template, so only the environment variable TF_CONFIG differs.
    """
    if pods.how.arguments:
        raise UserError(
            f"a TFJob sets TF_CONFIG only, and each task is to get {' '.join(pods.how.arguments)}; "
            "use --dry_run=trainjob or jobset, or --flags=none if the program reads TF_CONFIG"
        )
    specs = {
        _REPLICAS[job]: {
            "replicas": count,
            "restartPolicy": "OnFailure" if pods.max_restarts else "Never",
            "template": pods.template(job),
        }
        for job, count in pods.replicas.items()
    }
    spec: dict[str, Any] = {
        "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": pods.max_restarts},
        "tfReplicaSpecs": specs,
    }
    if "chief" not in pods.counts:
        spec["successPolicy"] = "AllWorkers"  # By default, worker 0 alone decides.
    return _document("kubeflow.org/v1", "TFJob", spec)


def _document(version: str, kind: str, spec: Mapping[str, Any]) -> str:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": NAME}, "spec": spec}
    return str(yaml.safe_dump(document, sort_keys=False, width=1000))
