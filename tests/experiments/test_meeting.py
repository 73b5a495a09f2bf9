"""The tasks of a training meet: nobody waits for ever, nor takes another training's task."""

from __future__ import annotations

import json
import re
import signal
import socket
from typing import Any, Callable, Mapping, Sequence

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.endings, pytest.mark.once, pytest.mark.slow]

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
    # A chief that builds its graph on a busy machine may be silent for seconds.
    ps = cluster.start("ps", 0, f"--runtime={runtime}", "--rendezvous_timeout=15")
    chief.wait_until_it_says("^Step: 24,").send(signal.SIGKILL)
    (address,) = cluster.hosts["worker"]
    assert_missed(ps, "/job:worker/task:0", address, REFUSED, 15)


@pytest.fixture
def waiting(train: Any, tasks: Any, runtime: str) -> Callable[..., list[Any]]:
    """Starts a ps and an evaluator whose chief is at a port that is somebody else's."""

    def begin(chief: str, address: str, seconds: int) -> list[Any]:
        cluster = tasks(ps=1, worker=1)
        hosts = {**cluster.hosts, chief: [address]}
        flags = [f"--runtime={runtime}", f"--rendezvous_timeout={seconds}"]
        return [
            cluster.start("ps", 0, *flags, env=place(hosts, "ps")),
            train("--strategy=ps", *flags, env=place(hosts, "evaluator")),
        ]

    return begin


def place(hosts: Mapping[str, Sequence[str]], job: str) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": hosts, "task": {"type": job, "index": 0}})}


def test_who_says_nothing_at_the_chiefs_port_is_missed(waiting: Any) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for task in waiting("worker", address, 6):
            why = "no answer, see whether it is stopped or another program, or correct its port"
            assert_missed(task, "/job:worker/task:0", address, why, 6)
            assert f"waiting for /job:worker/task:0 at {address}: no answer (5 of 6 s)" in task.out


# One that only coordinates shows nothing of itself but its note, and is the harder to recognise.
@pytest.mark.parametrize("chief", [pytest.param("worker", marks=pytest.mark.slow), "chief"])
def test_another_trainings_chief_is_not_ones_own(
    tasks: Any, waiting: Any, runtime: str, chief: str
) -> None:
    """Be it one that trains or, as the modern runtime's may, only coordinates."""
    others = tasks(**dict.fromkeys(("ps", "worker", chief), 1))
    running = [
        others.start(
            job, 0, "--max_steps=1000000", f"--runtime={runtime}", env=place(others.hosts, job)
        )
        for job in others.hosts
    ]
    try:
        running[list(others.hosts).index(chief)].wait_until_it_says("^Step: ")
        name, (address,) = f"/job:{chief}/task:0", others.hosts[chief]
        for task in waiting(chief, address, 12):
            why = "other cluster, give all tasks the same hosts and the same run token"
            assert_missed(task, name, address, why, 12)
            assert f"waiting for {name} at {address}: other cluster (5 of 12 s)" in task.out
    finally:
        for task in running:
            task.end()
