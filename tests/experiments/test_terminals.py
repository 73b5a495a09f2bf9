"""The command of 2016 in two and three terminals, without a host, each pasted from the others."""

from __future__ import annotations

import re
import shlex
import socket
import sys
import time
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.feature]
COMMAND = re.compile(r"^start (\w+) (\d) in another terminal: (.*)$", re.M)
# A server that is not there: loading MLflow takes longer than all the rest.
FLAGS = ("--max_steps=30", "--rendezvous_timeout=200", "--tracking_uri=http://127.0.0.1:9")


@pytest.fixture
def ports() -> None:
    """Waits until others, such as a test on another line, have left the ports of the default."""
    deadline = time.monotonic() + 200
    for port in (2222, 2223, 2224):
        while True:
            try:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
                break
            except OSError:
                assert time.monotonic() < deadline, f"port {port} is in use"
                time.sleep(0.2)


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
