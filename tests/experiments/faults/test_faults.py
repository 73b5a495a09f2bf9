"""What goes wrong with one task of a cluster, and what the others do: docs/failures.md."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Any, Callable, Iterator, NamedTuple

import pytest

from compat import ports

pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.once]

ENDLESS = "--max_steps=1000000"
FINITE = "--max_steps=1500"
EVERY = 50
FLAGS = ["--learning_rate=0.1", f"--checkpoint_every={EVERY}", "--log_every=10"]
TIMEOUT = "--rendezvous_timeout=20"
LOST = 138
LATE_SECS = 20.0
STOPPED_SECS = 30.0
TERM_SECS = 20.0

TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]
CHIEF = TASKS[1]
VICTIMS = {"worker": TASKS[2], "chief": CHIEF, "ps": TASKS[0]}


class Fault(NamedTuple):
    """A cell of the table.

    Attributes:
      victim: a key of `VICTIMS`.
      runtime: of the cluster.
      tell: is given what the others did, in words.
    """

    victim: str
    runtime: str
    tell: Callable[[str], None]


@pytest.fixture(params=list(VICTIMS))
def fault(
    request: pytest.FixtureRequest, runtime: str, record_property: Callable[[str, Any], None]
) -> Fault:
    name = str(request.node.originalname)[len("test_") :].replace("_", " ")
    record_property("fault", [name, request.param, runtime])
    return Fault(request.param, runtime, lambda words: record_property("outcome", words))


class Cluster:
    """A parameter server and two workers, started by hand.

    Attributes:
      running: those that were started, by task.
    """

    def __init__(self, tasks: Any, fault: Fault, *flags: str) -> None:
        self._hosts = tasks(ps=1, worker=2)
        self._flags = [*FLAGS, *flags, f"--runtime={fault.runtime}"]
        self.victim = VICTIMS[fault.victim]
        self.running: dict[tuple[str, int], Any] = {}

    def start(self, *which: tuple[str, int]) -> Cluster:
        for task in sorted(which, key=lambda task: task != CHIEF):
            # All see the chief's folder, if that is there.
            logdir = self.running[CHIEF].logdir if CHIEF in self.running else None
            self.running[task] = self._hosts.start(*task, *self._flags, logdir=logdir)
        return self

    def start_others(self) -> Cluster:
        return self.start(*(task for task in TASKS if task != self.victim))

    def address(self, task: tuple[str, int]) -> str:
        job, index = task
        return str(self._hosts.hosts[job][index])

    @property
    def name(self) -> str:
        return "/job:{}/task:{}".format(*self.victim)

    def until_it_trains(self) -> Any:
        self.running[CHIEF].wait_until_it_says("^Step: ")
        return self.running[self.victim]

    def codes(self) -> list[int | None]:
        """Waits for all, sees that they leave nothing behind; exit codes in the order of TASKS."""
        for task, training in self.running.items():
            training.wait()
            assert training.left_running() == []
            ports.check_free(self.address(task))
        return [self.running[task].code if task in self.running else None for task in TASKS]

    def errors_of_others(self) -> list[str]:
        """Returns the last line on standard error of each of the others that failed."""
        others = [training for task, training in self.running.items() if task != self.victim]
        for training in others:
            assert "Traceback" not in training.err
        return [training.err.splitlines()[-1] for training in others if training.code]

    def record(self, record: Any) -> Any:
        recorded = record(self.running[CHIEF].logdir)
        recorded.assert_one_training()
        return recorded


@pytest.fixture
def cluster(tasks: Any, fault: Fault) -> Iterator[Callable[..., Cluster]]:
    clusters: list[Cluster] = []

    def make(*flags: str) -> Cluster:
        clusters.append(Cluster(tasks, fault, *flags))
        return clusters[-1]

    yield make
    for made in clusters:
        for training in made.running.values():
            training.end()


@pytest.fixture(scope="module")
def undisturbed(train: Any) -> Callable[[str], float]:
    """The accuracy of the same training to which nothing happens."""
    found: dict[str, float] = {}

    def accuracy_of(runtime: str) -> float:
        if runtime not in found:
            training = train("--strategy=ps", *FLAGS, FINITE, f"--runtime={runtime}").wait()
            assert training.code == 0, training.out
            found[runtime] = accuracy(training.out)
        return found[runtime]

    return accuracy_of


def accuracy(out: str) -> float:
    (found,) = re.findall("Test-Accuracy: ([0-9.]+)", out)
    return float(found)


def last_step(out: str) -> int:
    return max(map(int, re.findall("Step: ([0-9]+),", out)))


def test_SIGKILL(fault: Fault, cluster: Any, record: Any) -> None:
    """Nobody starts it again."""
    survives = fault.victim == "worker"
    started = cluster(FINITE if survives else ENDLESS, TIMEOUT).start(*TASKS)
    started.until_it_trains().send(signal.SIGKILL)
    expected = [0, 0, 0] if survives else [LOST, LOST, LOST]
    expected[TASKS.index(started.victim)] = -signal.SIGKILL
    assert started.codes() == expected
    status = started.record(record).run[1]
    if survives:
        assert (started.errors_of_others(), status) == ([], "FINISHED")
        fault.tell("train on, and end with 0")
        return
    assert any(started.name in line for line in started.errors_of_others())
    assert status == "FAILED"
    fault.tell("name it, and end with 138")


def test_SIGTERM(fault: Fault, cluster: Any, record: Any) -> None:
    """Nobody starts it again."""
    survives = fault.victim == "worker"
    started = cluster(FINITE if survives else ENDLESS, TIMEOUT).start(*TASKS)
    victim = started.until_it_trains()
    reached, asked = last_step(started.running[CHIEF].out), time.time()
    victim.send(signal.SIGTERM).wait()
    assert victim.ended - asked < TERM_SECS
    expected = [0, 0, 0] if survives else [LOST, LOST, LOST]
    expected[TASKS.index(started.victim)] = 128 + signal.SIGTERM
    assert started.codes() == expected
    recorded = started.record(record)
    statuses = {"worker": "FINISHED", "chief": "KILLED", "ps": "FAILED"}
    assert recorded.run[1] == statuses[fault.victim]
    if fault.victim != "ps":
        assert recorded.checkpoints[-1] >= reached
    fault.tell("train on, and end with 0" if survives else "name it, and end with 138")


def test_SIGSTOP_for_30_s(fault: Fault, cluster: Any, record: Any) -> None:
    started = cluster(FINITE).start(*TASKS)
    started.until_it_trains().send(signal.SIGSTOP)
    time.sleep(STOPPED_SECS)
    victim = started.running[started.victim]
    victim.send(signal.SIGCONT)
    assert started.codes() == [0, 0, 0]
    assert started.record(record).run[1] == "FINISHED"
    fault.tell("go on with it, and end with 0")


def test_never_started(fault: Fault, cluster: Any, record: Any) -> None:
    started = cluster(FINITE, TIMEOUT).start_others()
    if (fault.victim, fault.runtime) == ("worker", "legacy"):
        assert started.codes() == [0, 0, None]
        assert started.record(record).run[1] == "FINISHED"
        fault.tell("train without it, and end with 0")
        return
    expected: list[int | None] = [LOST, LOST, LOST]
    expected[TASKS.index(started.victim)] = None
    assert started.codes() == expected
    missed = f"no connection within 20 s to {started.name} at {started.address(started.victim)}"
    assert any(missed in line for line in started.errors_of_others())
    fault.tell("name it every 5 s, and end with 138")


def test_started_20_s_late(fault: Fault, cluster: Any, record: Any) -> None:
    started = cluster(FINITE).start_others()
    time.sleep(LATE_SECS)
    started.start(started.victim)
    assert started.codes() == [0, 0, 0]
    assert started.record(record).run[1] == "FINISHED"
    if (fault.victim, fault.runtime) == ("worker", "legacy"):
        fault.tell("train without it meanwhile, and end with 0")
        return
    assert any(f"waiting for {started.name}" in t.out for t in started.running.values())
    fault.tell("name it every 5 s, then train, and end with 0")


def test_killed_and_restarted(
    fault: Fault, train: Any, record: Any, undisturbed: Callable[[str], float]
) -> None:
    """By the command that has started all of them."""
    job, index = VICTIMS[fault.victim]
    training = train("--strategy=ps", *FLAGS, FINITE, f"--runtime={fault.runtime}")
    training.wait_until_it_says(r"^\[worker 0\] Step: ")
    (victim,) = training.offspring(f"--job_name={job}", f"--task_index={index}")
    os.kill(victim, signal.SIGKILL)
    reached = last_step(training.out)
    assert training.wait().code == 0, training.out
    again = f"{job} {index} failed with exit code 137 (SIGKILL); starting it again in 1 s (1 of 3)"
    assert again in training.out
    assert training.left_running() == []
    went_on = [int(step) for step in re.findall("going on from step ([0-9]+)", training.out)]
    if fault.victim == "worker":
        assert went_on == []
    else:
        # Nothing of it, if the first checkpoint was still to come.
        assert max(went_on + [0]) >= reached - EVERY
    recorded = record(training.logdir)
    recorded.assert_one_training()
    assert recorded.run[1] == "FINISHED"
    assert accuracy(training.out) >= undisturbed(fault.runtime) - 0.1
    fault.tell(
        "train on, and end with 0"
        if fault.victim == "worker"
        else "wait for it, go on from the last checkpoint, and end with 0"
    )
