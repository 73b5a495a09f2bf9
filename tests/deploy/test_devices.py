"""Threads and GPUs of a task, as TensorFlow has them afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat.cluster.roles import Role
from compat.cluster.spec import Task
from experiments.launching.devices import hide_gpus

pytestmark = pytest.mark.once
PROGRAM = Path(__file__).parent / "programs" / "devices.py"


@pytest.fixture(scope="module")
def report(run_program: Any, runtime: str) -> Any:
    return run_program(PROGRAM, runtime=runtime, share=0.25)


def test_server_has_the_threads(report: Any, runtime: str) -> None:
    assert report["server"] == [3, 2]
    # TensorFlow 1.15 gives its threads no names.
    assert report["threads"] in ([3] if runtime == "modern" else [0, 3])


def test_server_has_the_share_of_the_memory(report: Any) -> None:
    assert report["memory"] == [False, 0.25]


def test_memory_grows_where_no_share_is_given(run_program: Any, runtimes: list[str]) -> None:
    report = run_program(PROGRAM, runtime=runtimes[-1], share=None)
    assert report["memory"] == [True, 0.0]


def test_eager_operations_have_the_threads(report: Any, runtime: str) -> None:
    if runtime == "legacy":
        pytest.skip("the legacy runtime has no eager operations")
    assert report["eager"] == [3, 2]
    assert "--gpu_memory_fraction=0.25 needs a server on the modern runtime" in report["alone"]


def test_parameter_server_sees_no_gpu(report: Any) -> None:
    assert report["visible"] == "-1"


@pytest.mark.parametrize(
    ("job", "role", "hidden"),
    [
        ("ps", Role.SERVE, True),
        ("chief", Role.COORDINATE, True),
        ("evaluator", Role.EVALUATE, True),
        ("chief", Role.TRAIN_AS_CHIEF, False),
        ("worker", Role.SERVE, False),
        ("worker", Role.SERVE_AND_COORDINATE, False),
        ("worker", Role.TRAIN, False),
    ],
)
def test_gpus_are_hidden_from_tasks_that_compute_nothing(
    job: str, role: Role, hidden: bool
) -> None:
    environment: dict[str, str] = {}
    hide_gpus(Task(job, 0), role, environment)
    assert environment == ({"CUDA_VISIBLE_DEVICES": "-1"} if hidden else {})


def test_choice_of_the_user_stays() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "1"}
    hide_gpus(Task("ps", 0), Role.SERVE, environment)
    assert environment == {"CUDA_VISIBLE_DEVICES": "1"}
