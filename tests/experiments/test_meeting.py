"""The tasks of a training meet: nobody waits for ever, nor takes another training's task."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.endings, pytest.mark.once]

REFUSED = "refused, start the task there, or correct its port"


def assert_missed(task: Any, name: str, address: str, why: str, seconds: int) -> None:
    assert task.wait().code == 138, task.err
    expected = f"error: no connection within {seconds} s to {name} at {address}: {why}\n"
    assert task.err == expected
    assert task.left_running() == []


def test_a_parameter_server_alone_gives_up(tasks: Any, runtime: str) -> None:
    cluster = tasks(ps=1, worker=1)
    ps = cluster.start("ps", 0, f"--runtime={runtime}", "--rendezvous_timeout=6")
    (address,) = cluster.hosts["worker"]
    assert_missed(ps, "/job:worker/task:0", address, REFUSED, 6)
    assert f"waiting for /job:worker/task:0 at {address}: refused (5 of 6 s)" in ps.out


def test_two_trainings_never_mix(tasks: Any, runtime: str) -> None:
    cluster = tasks(ps=1, worker=1)
    runtime_flag = f"--runtime={runtime}"
    first = ["--run_token=first", "--rendezvous_timeout=20", runtime_flag]
    second = ["--run_token=second", "--rendezvous_timeout=8", runtime_flag]
    ps, worker = cluster.start("ps", 0, *first), cluster.start("worker", 0, *second)
    (address,) = cluster.hosts["ps"]
    why = "other cluster, give all tasks the same hosts and the same run token"
    assert_missed(worker, "/job:ps/task:0", address, why, 8)
    assert re.search(rf"waiting for /job:ps/task:0 at {address}: other cluster", worker.out)
    assert not worker.logdir.joinpath("checkpoint").exists()
    (address,) = cluster.hosts["worker"]
    assert_missed(ps, "/job:worker/task:0", address, REFUSED, 20)


def test_a_chief_that_was_killed_is_missed(tasks: Any, runtime: str) -> None:
    cluster = tasks(ps=1, worker=1)
    chief = cluster.start("worker", 0, "--max_steps=1000000", f"--runtime={runtime}")
    chief.wait_until_it_says("^waiting for /job:ps/task:0")  # So that the other finds it.
    ps = cluster.start("ps", 0, f"--runtime={runtime}", "--rendezvous_timeout=6")
    chief.wait_until_it_says("^Step: 24,").send(signal.SIGKILL)
    (address,) = cluster.hosts["worker"]
    assert_missed(ps, "/job:worker/task:0", address, REFUSED, 6)
