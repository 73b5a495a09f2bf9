"""A cluster of one command, which starts its tasks again, as often as each may fail by itself."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from pathlib import Path
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


@pytest.mark.skipif(sys.platform != "linux", reason="only there a port can be shared")
def test_nobody_takes_the_port_of_a_task_that_is_to_come_back(train: Any) -> None:
    """Killed before anybody was connected, for such connections keep a port for a minute."""
    training = train("--strategy=ps", *FLAGS, "--num_workers=1", "--max_steps=50")
    kill(training, "ps", 0)
    training.wait_until_it_says("starting it again")
    (worker,) = training.offspring("--job_name=worker")
    argv = Path(f"/proc/{worker}/cmdline").read_text()
    (port,) = re.findall("--ps_hosts=[0-9.]+:([0-9]+)", argv)
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("", int(port)))
        stranger.listen()
        training.wait()  # Who got the port keeps it.
    assert training.wait().code == 0, training.out
