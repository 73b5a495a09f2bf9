"""Manifests that the launcher writes: valid by the published schemas, and true of the tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from compat.cluster.environment import cluster_from_tf_config
from compat.cluster.spec import Task
from compat.errors import UserError
from experiments import launch

pytestmark = pytest.mark.once
SCHEMAS = Path(__file__).parent / "schemas"


def definitions() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("kubernetes", "tfjob", "jobset", "trainjob"):
        found.update(json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))["$defs"])
    return found


def complaints(document: dict[str, Any], name: str) -> list[str]:
    schema = {"$ref": f"#/$defs/{name}", "$defs": definitions()}
    found = jsonschema.Draft7Validator(schema).iter_errors(document)
    return [f"{list(error.path)}: {error.message}" for error in found]


def written(capsys: pytest.CaptureFixture[str], *argv: str) -> list[Any]:
    assert launch.main([*argv, "--image=mine:1", "--", "python", "train.py", "--text=$(HOME)"]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


@pytest.mark.parametrize("chief", [False, True])
def test_job_set(chief: bool, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--dry_run=jobset", "--flags=hosts", "--evaluator", "--max_restarts=3"]
    (document,) = written(capsys, *argv, *(["--chief"] if chief else []))
    assert complaints(document, "JobsetV1alpha2JobSet") == []
    document["spec"]["replicatedJobs"][0]["template"]["spec"]["completion"] = 1
    assert len(complaints(document, "JobsetV1alpha2JobSet")) == 1, "unknown fields are refused"

    jobs = {job["name"]: job["template"]["spec"] for job in document["spec"]["replicatedJobs"]}
    counts = {"chief": 1, "ps": 1, "worker": 2, "evaluator": 1}
    if not chief:
        del counts["chief"]
    assert {name: job["completions"] for name, job in jobs.items()} == counts
    trainer = "chief" if chief else "worker"
    assert document["spec"]["successPolicy"]["targetReplicatedJobs"] == [trainer]
    seen: dict[Task, str] = {}  # What each pod is called, by the documentation of JobSet.
    for name, job in jobs.items():
        assert job["parallelism"] == job["completions"]
        assert job["backoffLimit"] == (3 if name != "evaluator" else 2**31 - 1)
        (container,) = job["template"]["spec"]["containers"]
        assert container["command"][:3] == ["python", "train.py", "--text=$$(HOME)"]
        # Kubernetes replaces only what is defined before.
        assert [entry["name"] for entry in container["env"][:2]] == [
            "JOB_COMPLETION_INDEX",
            "TF_CONFIG",
        ]
        env = {entry["name"]: entry.get("value", "") for entry in container["env"]}
        assert env.get("CUDA_VISIBLE_DEVICES") == ("-1" if name in ("ps", "evaluator") else None)
        for index in range(job["completions"]):
            config = env["TF_CONFIG"].replace("$(JOB_COMPLETION_INDEX)", str(index))
            cluster, task = cluster_from_tf_config(config)
            assert task == Task(name, index)
            flags = [
                word.replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in container["command"]
            ]
            assert {f"--job_name={name}", f"--task_index={index}"} <= set(flags)
            seen[task] = f"training-{name}-0-{index}.training:2222"
    for task, address in seen.items():
        if task.job != "evaluator":
            assert cluster.address_of(task) == address


@pytest.mark.parametrize("argv", [["--evaluator"], ["--chief", "--num_workers=0"]])
def test_train_job(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (job_set,) = written(capsys, "--dry_run=jobset", *argv)
    runtime, job = written(capsys, "--dry_run=trainjob", *argv)
    assert complaints(runtime, "TrainerV1alpha1TrainingRuntime") == []
    assert complaints(job, "TrainerV1alpha1TrainJob") == []
    reference = job["spec"]["runtimeRef"]
    assert f"{reference['apiGroup']}/v1alpha1" == runtime["apiVersion"]
    assert (reference["kind"], reference["name"]) == (runtime["kind"], runtime["metadata"]["name"])
    # The JobSet has the name of the TrainJob, which is part of the addresses.
    assert job["metadata"] == job_set["metadata"]
    assert list(runtime["spec"]["mlPolicy"]) == ["numNodes"]

    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    (nodes,) = [
        replicated["template"]
        for replicated in runtime["spec"]["template"]["spec"]["replicatedJobs"]
        if replicated["template"].pop("metadata", None) == {"labels": step}
    ]
    assert nodes["spec"]["completions"] == runtime["spec"]["mlPolicy"]["numNodes"]
    (container,) = nodes["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "node"  # Trainer refuses a trainer without it.
    container["name"] = "tensorflow"
    assert runtime["spec"]["template"]["spec"] == job_set["spec"]
    job["spec"]["numNodes"] = 3
    assert len(complaints(job, "TrainerV1alpha1TrainJob")) == 1, "unknown fields are refused"


def test_tf_job(capsys: pytest.CaptureFixture[str]) -> None:
    (document,) = written(capsys, "--dry_run=tfjob", "--chief", "--evaluator", "--num_workers=3")
    assert complaints(document, "KubeflowOrgV1TFJob") == []
    specs = document["spec"]["tfReplicaSpecs"]
    assert {name: spec["replicas"] for name, spec in specs.items()} == {
        "Chief": 1,
        "PS": 1,
        "Worker": 3,
        "Evaluator": 1,
    }
    for spec in specs.values():
        (container,) = spec["template"]["spec"]["containers"]
        assert (container["name"], container["image"]) == ("tensorflow", "mine:1")
        assert container["command"] == ["python", "train.py", "--text=$$(HOME)"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("--dry_run=tfjob --image=i --flags=hosts", r"a TFJob sets TF_CONFIG only, and each task "),
        ("--dry_run=jobset", r"--dry_run=jobset needs .*; add --image=NAME$"),
        ("--dry_run --image=i", r"--image has no effect with --dry_run=shell; "),
        ("--image=i", r"--image has no effect without --dry_run=jobset, trainjob or tfjob; "),
        ("--dry_run=tfjob --image=i --ps_hosts=a:1 --worker_hosts=b:1", r"--ps_hosts has no "),
        ("--dry_run=yaml", r"argument --dry_run: invalid choice: 'yaml' "),
    ],
)
def test_refusals(argv: str, sentence: str) -> None:
    with pytest.raises(UserError, match=f"^{sentence}"):
        launch.main([*argv.split(), "--", "python", "train.py"])
