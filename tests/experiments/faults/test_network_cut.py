"""A task whose network is cut, on hosts with addresses of their own: docs/failures.md."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from typing import Any, Callable, Iterator

import pytest

from compat.errors import may_pass
from tests.experiments.faults.conftest import (
    CHIEF,
    EVALUATOR,
    FLAGS,
    PS,
    WORKER,
    Fault,
    accuracy,
)

pytestmark = [pytest.mark.cluster, pytest.mark.faults]

CUT_SECS = 20.0
MOST_RESTARTS = 3
# Long enough to be cut off for that long, and to go on after it.
LENGTH = "--max_steps=30000"


class Hosts:
    """Network namespaces of this machine, each with an address, joined by a bridge."""

    def __init__(self) -> None:
        self._prefix = f"faults-{os.getpid()}-"
        self._made: list[str] = []
        self._add("switch")
        self._ip("-n", self._prefix + "switch", "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._prefix + "switch", "link", "set", "bridge", "up")

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)

    def _add(self, name: str) -> None:
        self._ip("netns", "add", self._prefix + name)
        self._made.append(name)

    def add(self, name: str, address: str) -> list[str]:
        """Adds a host; returns what a command has to begin with in order to run there."""
        self._add(name)
        switch, host = self._prefix + "switch", self._prefix + name
        self._ip("-n", switch, *f"link add {name} type veth peer name eth0 netns {host}".split())
        self._ip("-n", switch, "link", "set", name, "up")
        self.join(name)
        self._ip("-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
        self._ip("-n", host, "link", "set", "eth0", "up")
        self._ip("-n", host, "link", "set", "lo", "up")
        return ["ip", "netns", "exec", host]

    def join(self, name: str) -> None:
        """Joins a host's cable to the bridge."""
        self._ip("-n", self._prefix + "switch", "link", "set", name, "master", "bridge")

    def cut(self, name: str) -> None:
        """Takes a host's cable off the bridge: nothing is refused, nothing gets through."""
        self._ip("-n", self._prefix + "switch", "link", "set", name, "nomaster")

    def close(self) -> None:
        for name in reversed(self._made):
            self._ip("netns", "delete", self._prefix + name)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    try:
        made = Hosts()
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", b"") or str(error).encode()
        pytest.skip(f"network namespaces need root and iproute2 ({why.decode().strip()})")
    with contextlib.closing(made):
        yield made


class Supervised:
    """One task, started again when it ends in a way that may pass, as Kubernetes does.

    Attributes:
      trainings: each start of it.
    """

    def __init__(self, begin: Callable[[], Any]) -> None:
        self.trainings = [begin()]
        self._begin = begin
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def _supervise(self) -> None:
        while may_pass(self.trainings[-1].wait().code) and len(self.trainings) <= MOST_RESTARTS:
            self.trainings.append(self._begin())

    def wait(self) -> Any:
        """Returns the last of the trainings, at its end."""
        self._thread.join()
        return self.trainings[-1]


def test_network_cut_for_20_s(
    fault: Fault, hosts: Hosts, train: Any, recorded: Any, undisturbed: Callable[[str], float]
) -> None:
    tasks = [CHIEF, PS, WORKER, *([EVALUATOR] if fault.victim == EVALUATOR else [])]
    names = {task: "{}{}".format(*task) for task in tasks}
    addresses = {task: f"10.0.0.{number}" for number, task in enumerate(tasks, 1)}
    inside = {task: hosts.add(names[task], addresses[task]) for task in tasks}
    flags = [*FLAGS, LENGTH, f"--runtime={fault.runtime}", "--strategy=ps", "--allow_network"]
    flags.append(f"--ps_hosts={addresses[PS]}:2222")
    flags.append(f"--worker_hosts={addresses[CHIEF]}:2222,{addresses[WORKER]}:2222")
    logdir: list[Any] = []

    def start(task: tuple[str, int]) -> Callable[[], Any]:
        def begin() -> Any:
            job, index = task
            return train(
                f"--job_name={job}",
                f"--task_index={index}",
                *flags,
                within=inside[task],
                logdir=logdir[0] if logdir else None,
            )

        return begin

    running = {}
    for task in tasks:
        running[task] = Supervised(start(task))
        logdir = [running[task].trainings[0].logdir]
    running[CHIEF].trainings[0].wait_until_it_says("^Step: ")
    hosts.cut(names[fault.victim])
    time.sleep(CUT_SECS)
    hosts.join(names[fault.victim])
    ends = {task: supervised.wait() for task, supervised in running.items()}
    assert {task: end.code for task, end in ends.items()} == dict.fromkeys(tasks, 0)
    assert [end.left_running() for end in ends.values()] == [[]] * len(tasks)
    found = recorded(logdir[0])
    assert found.run[1] == "FINISHED"
    said = "".join(training.out for training in running[CHIEF].trainings)
    assert accuracy(said) >= undisturbed(fault.runtime) - 0.1
    again = [names[task] for task in tasks if len(running[task].trainings) > 1]
    fault.tell("; ".join(again))
