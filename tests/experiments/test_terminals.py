"""The command of 2016 in two and three terminals, without a host, each pasted from the others."""

from __future__ import annotations

import fcntl
import functools
import re
import shlex
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.feature]
COMMAND = re.compile(r"^start (\w+) (\d) in another terminal: (.*)$", re.M)
# A server that is not there: loading MLflow takes longer than all the rest.
FLAGS = ("--max_steps=30", "--rendezvous_timeout=200", "--tracking_uri=http://127.0.0.1:9")


@pytest.fixture
def ports() -> Iterator[None]:
    """Waits until others have left the ports of the default, and keeps out tests on other lines."""
    deadline = time.monotonic() + 200
    with open(Path(tempfile.gettempdir(), "ports_of_the_default.lock"), "w") as turns:
        while not _is_done(lambda: fcntl.flock(turns, fcntl.LOCK_EX | fcntl.LOCK_NB)):
            assert time.monotonic() < deadline, "another test has the ports of the default"
            time.sleep(0.2)
        for port in (2222, 2223, 2224):
            while not _is_done(functools.partial(_bind, port)):
                assert time.monotonic() < deadline, f"port {port} is in use"
                time.sleep(0.2)
        yield


def _is_done(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _bind(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def pasted(start: Any, waiting: Any) -> Any:
    """Starts what a waiting task has printed."""
    waiting.wait_until_it_says(r"^start \w+ \d in another terminal: ")
    words = shlex.split(COMMAND.findall(waiting.out)[-1][2])
    assert words[:3] == [sys.executable, "-m", "experiments.mnist"]
    return start(*words[3:])


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_command_of_2016_without_hosts(
    train: Any, start: Any, runtime: str, workers: int, ports: None
) -> None:
    count = ("--num_workers=2",) if workers == 2 else ()
    flags = ("--strategy=ps", "--job_name=worker", f"--runtime={runtime}", *count, *FLAGS)
    terminals = [train(*flags)]
    if workers == 2:
        terminals.append(train(*flags, "--task_index=1"))
    terminals.append(pasted(start, terminals[0]))
    first = (
        f"no hosts are named, so the cluster is on this machine, {workers + 1} tasks, this one is "
        "worker 0; to name others: --ps_hosts=127.0.0.1:2222 --worker_hosts=127.0.0.1:2223"
    )
    assert terminals[0].out.startswith(first)
    assert [terminal.wait().code for terminal in terminals] == [0] * len(terminals)
    assert "Test-Accuracy: " in terminals[0].out
