"""A task whose network is cut, on hosts with addresses of their own: docs/failures.md."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import threading
import time
from typing import Any, Callable, Iterator

import pytest

from compat.errors import is_retryable
from tests.experiments.faults.conftest import (
    CHIEF,
    EVALUATOR,
    EVERY,
    FLAGS,
    PS,
    WORKER,
    Fault,
    updates_lost,
    wait_for_step,
)

pytestmark = [pytest.mark.cluster, pytest.mark.faults]

CUT_SECS = 20.0
MOST_RESTARTS = 3
# Long enough to be cut off for that long, and to go on after it.
LENGTH = "--max_steps=10000"
ENDLESS = "--max_steps=1000000"
TIMEOUT = "--rendezvous_timeout=20"
LOST = 138


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

    def listening(self, name: str) -> str:
        """Returns what listens at a host's ports; best nothing."""
        listed = ["ip", "netns", "exec", self._prefix + name, "ss", "--no-header", "-ltn"]
        return subprocess.run(listed, check=True, capture_output=True, timeout=30).stdout.decode()

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
        while is_retryable(self.trainings[-1].wait().code) and len(self.trainings) <= MOST_RESTARTS:
            self.trainings.append(self._begin())

    def wait(self) -> Any:
        """Returns the last of the trainings, at its end."""
        self._thread.join()
        return self.trainings[-1]


class Cluster:
    """A parameter server and two workers, each on a host of its own, and an evaluator if it is hit.

    Attributes:
      names: of the hosts, by task.
    """

    def __init__(self, train: Any, hosts: Hosts, fault: Fault, *flags: str) -> None:
        tasks = [CHIEF, PS, WORKER, *([EVALUATOR] if fault.victim == EVALUATOR else [])]
        self.names = {task: "{}{}".format(*task) for task in tasks}
        addresses = {task: f"10.0.0.{number}" for number, task in enumerate(tasks, 1)}
        self._inside = {task: hosts.add(self.names[task], addresses[task]) for task in tasks}
        self._train = train
        self._flags = [*FLAGS, *flags, f"--runtime={fault.runtime}", "--strategy=ps"]
        self._flags += ["--allow_network", f"--ps_hosts={addresses[PS]}:2222"]
        self._flags.append(f"--worker_hosts={addresses[CHIEF]}:2222,{addresses[WORKER]}:2222")
        self.logdir: Any = None

    def start(self, task: tuple[str, int]) -> Any:
        """Starts a task; all see the log folder of the first."""
        job, index = task
        training = self._train(
            f"--job_name={job}",
            f"--task_index={index}",
            *self._flags,
            within=self._inside[task],
            logdir=self.logdir,
        )
        self.logdir = training.logdir
        return training


def test_network_cut_for_20_s(fault: Fault, hosts: Hosts, train: Any, finished: Any) -> None:
    cluster = Cluster(train, hosts, fault, LENGTH)
    running = {task: Supervised(functools.partial(cluster.start, task)) for task in cluster.names}
    running[CHIEF].trainings[0].wait_until_it_says("^Step: ")
    wait_for_step(running[CHIEF].trainings[0], 3 * EVERY)
    hosts.cut(cluster.names[fault.victim])
    time.sleep(CUT_SECS)
    hosts.join(cluster.names[fault.victim])
    ends = {task: supervised.wait() for task, supervised in running.items()}
    assert {task: end.code for task, end in ends.items()} == dict.fromkeys(running, 0)
    assert [end.left_running() for end in ends.values()] == [[]] * len(running)
    assert [hosts.listening(name) for name in cluster.names.values()] == [""] * len(running)
    for supervised in running.values():
        for before in supervised.trainings[:-1]:
            assert "lost /job:" in before.err.splitlines()[-1]
            assert "Traceback" not in before.err
    said = "".join(training.out for training in running[CHIEF].trainings)
    assert all(lost <= EVERY for lost in updates_lost(said))
    finished(*running[CHIEF].trainings, length=LENGTH)
    again = {  # Each ending once, however often a task had it.
        "{} {} ended with {}".format(*task, before.code): None
        for task, supervised in running.items()
        for before in supervised.trainings[:-1]
    }
    fault.tell(", ".join(again) + "; started again, all went on" if again else "go on with it")


def test_network_cut_for_good(
    fault: Fault, hosts: Hosts, train: Any, recorded: Any, finished: Any
) -> None:
    """Nobody is told, and a connection on which an answer is waited for would stay for ever."""
    cluster = Cluster(train, hosts, fault, LENGTH if fault.survived else ENDLESS, TIMEOUT)
    running = {task: cluster.start(task) for task in cluster.names}
    running[CHIEF].wait_until_it_says("^Step: ")
    hosts.cut(cluster.names[fault.victim])
    for training in running.values():
        training.wait()
        assert "Traceback" not in training.err
        assert training.left_running() == []
    assert [hosts.listening(name) for name in cluster.names.values()] == [""] * len(running)
    codes = {task: training.code for task, training in running.items()}
    if fault.survived:
        # Who is cut off has the log folder all the same, which may say that all is done by then.
        assert codes.pop(fault.victim) in (0, LOST)
    assert codes == dict.fromkeys(codes, 0 if fault.survived else LOST)
    if fault.survived:
        finished(running[CHIEF], length=LENGTH)
        fault.tell("train on, and end with 0")
        return
    assert recorded(cluster.logdir).run[1] == "FAILED"
    others = [training for task, training in running.items() if task != fault.victim]
    assert any(fault.name in training.err.splitlines()[-1] for training in others)
    fault.tell("name it, and end with 138")


def test_hosts_that_are_not_there(hosts: Hosts, train: Any, runtimes: Any) -> None:
    """Not a cell of the table: nobody has the one's address, the other's name is unknown."""
    flags = [*FLAGS, TIMEOUT, "--strategy=ps", "--job_name=worker", "--allow_network"]
    flags += ["--ps_hosts=10.0.0.9:2222", "--worker_hosts=10.0.0.1:2222,nobody.invalid:2222"]
    chief = train(*flags, f"--runtime={runtimes[-1]}", within=hosts.add("worker0", "10.0.0.1"))
    assert chief.wait().code == LOST, chief.err
    absent = {"/job:ps/task:0": "10.0.0.9:2222: no route"}
    if "modern" in runtimes:  # The chief of the legacy runtime needs its parameter server only.
        absent["/job:worker/task:1"] = "nobody.invalid:2222: name unknown"
    for name, how in absent.items():
        assert f"waiting for {name} at {how} " in chief.out, chief.out
        assert name in chief.err.splitlines()[-1]


def test_workers_that_make_each_update_together(hosts: Hosts, train: Any, runtimes: Any) -> None:
    """Not a cell of the table: they have no parameter servers."""
    if "modern" not in runtimes:
        pytest.skip("TensorFlow 1.x has no such strategy")
    inside = [hosts.add(f"worker{i}", f"10.0.0.{i}") for i in (1, 2)]
    flags = [*FLAGS, ENDLESS, TIMEOUT, "--strategy=multi_worker", "--allow_network"]
    flags += ["--job_name=worker", "--worker_hosts=10.0.0.1:2222,10.0.0.2:2222"]
    running = []
    for index, within in enumerate(inside):
        logdir = running[0].logdir if running else None
        running.append(train(f"--task_index={index}", *flags, within=within, logdir=logdir))
    running[0].wait_until_it_says("^Step: ")
    hosts.cut("worker2")
    for index, training in enumerate(running):
        assert training.wait().code == LOST, training.err
        assert f"lost /job:worker/task:{1 - index} at 10.0.0.{2 - index}" in training.err
        assert "Traceback" not in training.err
        assert training.left_running() == []
