"""A cluster of one command, which starts its tasks again, as often as each may fail by itself."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.experiments.faults.conftest import FLAGS, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.faults]


def kill(training: Any, job: str, index: int) -> None:
    """Kills a task when it is there."""
    found: list[int] = []

    def is_there() -> bool:
        found[:] = training.offspring(f"--job_name={job}", f"--task_index={index}")
        return bool(found)

    wait_for(is_there, f"{job} {index}")
    os.kill(found[0], signal.SIGKILL)


def came_back(out: str, times: int) -> bool:
    """Whether the chief has ended because it lost a task so often, and trains again."""
    _, *parts = out.split("worker 0 failed with exit code 138; starting it again")
    return len(parts) == times and "[worker 0] Step: " in parts[-1]


def test_who_lost_others_spends_no_restarts(train: Any, record: Any, runtime: str) -> None:
    """Each parameter server is killed as often as it may be; the workers lose one at each."""
    flags = [*FLAGS, "--num_ps=2", "--max_restarts=2", f"--runtime={runtime}"]
    training = train("--strategy=ps", *flags, "--max_steps=2000")
    training.wait_until_it_says(r"^\[worker 0\] Step: ")
    for number, index in enumerate((0, 1, 0, 1), start=1):
        kill(training, "ps", index)
        wait_for(lambda n=number: came_back(training.out, n), "return of the chief", 120)
    assert training.wait().code == 0, training.out
    assert training.left_running() == []
    lines = training.out.splitlines()
    assert [line[-8:] for line in lines if "SIGKILL" in line] == ["(1 of 2)"] * 2 + ["(2 of 2)"] * 2
    assert record(training.logdir).run[1] == "FINISHED"
