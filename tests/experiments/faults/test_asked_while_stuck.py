"""A step that does not end, for another task was stopped: it is given up, also by SIGTERM."""

from __future__ import annotations

import re
import signal
import time
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.faults]

FLAGS = ["--max_steps=1000000", "--checkpoint_every=10", "--noeval_in_chief", "--log_every=1"]
TERM_SECS = 20.0
STUCK_SECS = 3.0


def wait_until_stuck(training: Any) -> None:
    """Waits until a training has said nothing for a while."""
    said, since = training.out, time.monotonic()
    while time.monotonic() - since < STUCK_SECS:
        time.sleep(0.1)
        if training.out != said:
            said, since = training.out, time.monotonic()


def test_a_stopped_parameter_server_is_missed(tasks: Any, record: Any, runtime: str) -> None:
    cluster = tasks(ps=1, worker=1)
    ps = cluster.start("ps", 0, f"--runtime={runtime}")
    flags = [*FLAGS, f"--runtime={runtime}", "--rendezvous_timeout=15"]
    chief = cluster.start("worker", 0, *flags)
    chief.wait_until_it_says("^Step: 24,")
    ps.send(signal.SIGSTOP)
    try:
        assert chief.wait(60).code == 138, chief.err
        assert chief.left_running() == []
    finally:
        ps.send(signal.SIGCONT).end()
    assert re.search("^waiting for /job:ps/task:0 at .*: no answer ", chief.out, re.MULTILINE)
    assert "/job:ps/task:0" in chief.err.splitlines()[-1]
    assert "Traceback" not in chief.err
    assert record(chief.logdir).run[1] == "FAILED"


def assert_it_ends_when_it_is_asked_to(tasks: Any, record: Any, *flags: str) -> None:
    cluster = tasks(ps=1, worker=1)
    ps = cluster.start("ps", 0, *flags)
    chief = cluster.start("worker", 0, *FLAGS, *flags)
    chief.wait_until_it_says("^Step: 24,")
    ps.send(signal.SIGSTOP)
    try:
        wait_until_stuck(chief)
        asked = time.time()
        chief.send(signal.SIGTERM).wait(60)
        assert (chief.code, chief.ended - asked < TERM_SECS) == (143, True), chief.err
        assert chief.left_running() == []
    finally:
        ps.send(signal.SIGCONT).end()
    assert "Traceback" not in chief.err
    assert chief.err.splitlines()[-1] == (
        "error: the current steps did not finish within 6 s, so no last checkpoint was written; "
        "training resumes from the one before"
    )
    assert record(chief.logdir).run[1] == "KILLED"


def test_chief_that_is_asked_to_end(tasks: Any, record: Any, runtime: str) -> None:
    assert_it_ends_when_it_is_asked_to(tasks, record, f"--runtime={runtime}")


def test_chief_of_synchronous_workers_that_is_asked_to_end(tasks: Any, record: Any) -> None:
    """Its queue runners, too, are in calls that do not end."""
    assert_it_ends_when_it_is_asked_to(tasks, record, "--runtime=legacy", "--sync")
