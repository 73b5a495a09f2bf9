"""What a cluster manager says of a process, against its flags."""

from __future__ import annotations

import json
from typing import Any

import pytest
from absl import flags

from compat.cluster.environment import check_agreement, cluster_from_hosts
from compat.cluster.spec import Task
from compat.errors import UserError
from experiments.settings import Settings
from experiments.settings.flags import define_flags
from experiments.settings.place import place_from_flags

CLUSTER = cluster_from_hosts("a:1", "b:1,c:1")
WORKER_1 = Task("worker", 1)


def tf_config(job: str, index: int, **changes: list[str]) -> dict[str, str]:
    jobs = {"ps": ["a:1"], "worker": ["b:1", "c:1"], **changes}
    return {"TF_CONFIG": json.dumps({"cluster": jobs, "task": {"type": job, "index": index}})}


def slurm(number: str, count: str, order: str = "ps,worker") -> dict[str, str]:
    return {"SLURM_PROCID": number, "SLURM_NTASKS": count, "SLURM_TASKS_ARE": order}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"TF_CONFIG": ""},
        tf_config("worker", 1),
        tf_config("worker", 1, evaluator=["d:1"]),
        slurm("2", "3"),
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"},  # Not of our batch script.
    ],
)
def test_agreement(environment: dict[str, str]) -> None:
    check_agreement(CLUSTER, WORKER_1, environment)


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            tf_config("worker", 0),
            "--job_name=worker --task_index=1 contradicts TF_CONFIG, whose task is worker 0; leave "
            "out the flags, or unset TF_CONFIG",
        ),
        (
            tf_config("worker", 1, ps=["z:1"]),
            "--ps_hosts=a:1 contradicts TF_CONFIG, which has z:1; leave out the flags",
        ),
        (
            tf_config("worker", 1, worker=["b:1", "c:1", "d:1"]),
            "--worker_hosts=b:1,c:1 contradicts TF_CONFIG, which has b:1,c:1,d:1; leave out",
        ),
        (
            tf_config("worker", 1, chief=["d:1"]),
            "there is no chief in the flags, and d:1 in TF_CONFIG",
        ),
        ({"TF_CONFIG": "{"}, "TF_CONFIG: '{' is not valid JSON"),
        (
            slurm("2", "4"),
            "SLURM_NTASKS=4 contradicts --ps_hosts and --worker_hosts, which have 1 and 2; start "
            "as many tasks as there are hosts: srun --ntasks=3",
        ),
        (
            slurm("1", "3"),
            "SLURM_PROCID=1 contradicts --job_name=worker --task_index=1, which is task 2; count",
        ),
        (slurm("3", "3"), "SLURM_PROCID=3 contradicts --job_name=worker --task_index=1"),
        (slurm("", "3"), "SLURM_PROCID='' is not a number; start the tasks with srun"),
        (slurm("2", "3", "worker,ps"), "SLURM_TASKS_ARE=worker,ps is unknown; use ps,worker"),
    ],
)
def test_contradictions_are_said_with_both_values(
    environment: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UserError) as caught:
        check_agreement(CLUSTER, WORKER_1, environment)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_command_is_refused_before_tensorflow_loads(start: Any) -> None:
    flags = ["--strategy=ps", "--job_name=worker", "--task_index=1", "--ps_hosts=a:1"]
    env = {**tf_config("worker", 0), "PYTHONPROFILEIMPORTTIME": "1"}
    training = start(*flags, "--worker_hosts=b:1,c:1", env=env).wait()
    *imported, complaint = training.err.splitlines()
    assert complaint.startswith("error: --job_name=worker --task_index=1 contradicts TF_CONFIG")
    assert training.code == 2
    assert not [line for line in imported if line.endswith(" tensorflow")]


def test_a_task_of_a_cluster_does_not_train_all_by_itself() -> None:
    values = flags.FlagValues()
    define_flags(Settings, values=values)
    values(["program"])
    sentence = (
        r"^TF_CONFIG describes a cluster with /job:ps/task:0, and --strategy=local trains in "
    )
    with pytest.raises(UserError, match=sentence):
        place_from_flags(values, tf_config("worker", 0)["TF_CONFIG"])
    alone = {"cluster": {"worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}
    for environment in (json.dumps(alone), "{}", None):
        assert place_from_flags(values, environment) == (None, None)
