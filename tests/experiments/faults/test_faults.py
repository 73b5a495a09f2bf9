"""What goes wrong with one task of a cluster, and what the others do: docs/failures.md."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from compat.cluster import ports
from tests.experiments.faults.conftest import (
    CHIEF,
    EVALUATOR,
    EVERY,
    FINITE,
    FLAGS,
    PS,
    WORKER,
    Fault,
    last_step,
    updates_lost,
    wait_for,
    wait_for_step,
)

pytestmark = [pytest.mark.cluster, pytest.mark.faults]

ENDLESS = "--max_steps=1000000"
TIMEOUT = "--rendezvous_timeout=20"
LOST = 138
LATE_SECS = 20.0
STOPPED_SECS = 30.0
TERM_SECS = 20.0
READY = {PS: "serves at", EVALUATOR: "evaluates the checkpoints of"}


class Cluster:
    """A parameter server and two workers, started by hand, and an evaluator if that is the victim.

    Attributes:
      tasks: in the order in which they are started; all see the log folder of the first.
      running: those that were started, by task.
    """

    def __init__(self, train: Any, tasks: Any, fault: Fault, *flags: str) -> None:
        self._train = train
        self._cluster = tasks(ps=1, worker=2)
        self._flags = [*FLAGS, *flags, f"--runtime={fault.runtime}"]
        self._fault = fault
        self.tasks = [EVALUATOR] if fault.victim == EVALUATOR else []
        self.tasks += [CHIEF, PS, WORKER]
        self.running: dict[tuple[str, int], Any] = {}

    def start(self, *which: tuple[str, int]) -> Cluster:
        for task in which:
            logdir = next(iter(self.running.values())).logdir if self.running else None
            if task == EVALUATOR:
                hosts = [f"--{j}_hosts={','.join(h)}" for j, h in self._cluster.hosts.items()]
                self.running[task] = self._train(
                    "--strategy=ps", "--job_name=evaluator", *hosts, *self._flags, logdir=logdir
                )
                # It takes seconds to come up, in which the training would come far.
                self.running[task].wait_until_it_says(READY[task])
            else:
                self.running[task] = self._cluster.start(*task, *self._flags, logdir=logdir)
        return self

    def start_others(self) -> Cluster:
        return self.start(*(task for task in self.tasks if task != self._fault.victim))

    def address(self, task: tuple[str, int]) -> str:
        job, index = task
        return str(self._cluster.hosts[job][index])

    @property
    def logdir(self) -> Any:
        return self.running[CHIEF].logdir

    def until_it_trains(self) -> Any:
        self.running[CHIEF].wait_until_it_says("^Step: ")
        return self.running[self._fault.victim]

    def assert_codes(self, others: int, victim: int | None) -> None:
        """Waits for all, sees how they end and that they leave nothing behind."""
        codes = {}
        for task, training in self.running.items():
            codes[task] = training.wait().code
            assert training.left_running() == []
            if task != EVALUATOR:
                ports.check_free(self.address(task))
        expected = dict.fromkeys(self.running, others)
        if self._fault.victim in self.running:
            assert victim is not None
            expected[self._fault.victim] = victim
        told = [f"{t}: {self.running[t].out[-500:]} {self.running[t].err}" for t in codes]
        assert codes == expected, "\n".join(told)

    def times_it_was_waited_for(self) -> list[int]:
        """Returns how many times each has said that it waits for the victim."""
        name = f"waiting for {self._fault.name} "
        return [training.out.count(name) for training in self.running.values()]

    def errors_of_others(self) -> list[str]:
        """Returns the last line on standard error of each of the others that failed."""
        others = [t for task, t in self.running.items() if task != self._fault.victim]
        for training in others:
            assert "Traceback" not in training.err
        return [training.err.splitlines()[-1] for training in others if training.code]


@pytest.fixture
def cluster(train: Any, tasks: Any, fault: Fault) -> Iterator[Callable[..., Cluster]]:
    clusters: list[Cluster] = []

    def make(*flags: str) -> Cluster:
        clusters.append(Cluster(train, tasks, fault, *flags))
        return clusters[-1]

    yield make
    for made in clusters:
        for training in made.running.values():
            training.end()


def course(fault: Fault) -> list[str]:
    """Returns the flags for how long to train: not without end, if the victim's end is not ours.

    An evaluator comes first, and the others may take long to come on a busy machine.
    """
    flags = [FINITE if fault.survived else ENDLESS]
    return flags if fault.victim == EVALUATOR else [*flags, TIMEOUT]


def assert_evaluated(fault: Fault, found: Any, logdir: Any) -> None:
    """Asserts that the evaluator, if it was hit, has come to the last checkpoint all the same."""
    if fault.victim == EVALUATOR:
        lines = (logdir / "evaluations.jsonl").read_text().splitlines()
        assert json.loads(lines[-1])["step"] == found.checkpoints[-1]


def test_SIGKILL(fault: Fault, cluster: Any, finished: Any, recorded: Any) -> None:
    """Nobody starts it again."""
    started = cluster(*course(fault))
    started.start(*started.tasks).until_it_trains().send(signal.SIGKILL)
    started.assert_codes(others=0 if fault.survived else LOST, victim=-signal.SIGKILL)
    if fault.survived:
        assert started.errors_of_others() == []
        finished(started.running[CHIEF])
        fault.tell("train on, and end with 0")
        return
    assert any(fault.name in line for line in started.errors_of_others())
    assert recorded(started.logdir).run[1] == "FAILED"
    fault.tell("name it, and end with 138")


def test_SIGTERM(fault: Fault, cluster: Any, finished: Any, recorded: Any) -> None:
    """Nobody starts it again."""
    started = cluster(*course(fault))
    victim = started.start(*started.tasks).until_it_trains()
    reached, asked = last_step(started.running[CHIEF].out), time.time()
    victim.send(signal.SIGTERM).wait()
    assert victim.ended - asked < TERM_SECS
    started.assert_codes(others=0 if fault.survived else LOST, victim=128 + signal.SIGTERM)
    if fault.survived:
        assert started.errors_of_others() == []
        finished(started.running[CHIEF])
        fault.tell("train on, and end with 0")
        return
    assert any(fault.name in line for line in started.errors_of_others())
    found = recorded(started.logdir)
    assert found.run[1] == {PS: "FAILED", CHIEF: "KILLED"}[fault.victim]
    if fault.victim == CHIEF:
        assert found.checkpoints[-1] >= reached
    fault.tell("name it, and end with 138")


def test_SIGSTOP_for_30_s(fault: Fault, cluster: Any, finished: Any) -> None:
    started = cluster(FINITE)
    victim = started.start(*started.tasks).until_it_trains()
    wait_for_step(started.running[CHIEF], EVERY)  # What is said amid the first, ADR 16 says.
    victim.send(signal.SIGSTOP)
    time.sleep(STOPPED_SECS)
    victim.send(signal.SIGCONT)
    started.assert_codes(others=0, victim=0)
    assert_evaluated(fault, finished(started.running[CHIEF]), started.logdir)
    if fault.victim == PS:
        assert max(started.times_it_was_waited_for()) >= 3
        fault.tell("name it every 5 s, go on with it, and end with 0")
        return
    fault.tell("go on with it, and end with 0")


def test_never_started(fault: Fault, cluster: Any, finished: Any) -> None:
    started = cluster(FINITE, TIMEOUT).start_others()
    if not fault.needed:
        started.assert_codes(others=0, victim=None)
        finished(started.running[CHIEF])
        fault.tell("train without it, and end with 0")
        return
    started.assert_codes(others=LOST, victim=None)
    missed = f"no connection within 20 s to {fault.name} at {started.address(fault.victim)}"
    assert any(missed in line for line in started.errors_of_others())
    assert max(started.times_it_was_waited_for()) >= 3  # Every 5 s.
    fault.tell("name it every 5 s, and end with 138")


def test_started_20_s_late(fault: Fault, cluster: Any, finished: Any) -> None:
    started = cluster(FINITE).start_others()
    time.sleep(LATE_SECS)
    if fault.needed:  # It is named every 5 s; but who waits may have taken long to come itself.
        wait_for(lambda: max(started.times_it_was_waited_for()) >= 3, "names", LATE_SECS)
    started.start(fault.victim)
    started.assert_codes(others=0, victim=0)
    assert_evaluated(fault, finished(started.running[CHIEF]), started.logdir)
    if not fault.needed:
        fault.tell("train without it meanwhile, and end with 0")
        return
    fault.tell("name it every 5 s, then train, and end with 0")


def test_killed_and_restarted(fault: Fault, train: Any, finished: Any) -> None:
    """By the command that has started all of them."""
    job, index = fault.victim
    beside = ["--evaluator"] if fault.victim == EVALUATOR else []
    training = train("--strategy=ps", *FLAGS, FINITE, f"--runtime={fault.runtime}", *beside)
    training.wait_until_it_says(r"^\[worker 0\] Step: ")
    wait_for_step(training, 3 * EVERY)  # Of which some are in a checkpoint.
    (victim,) = training.offspring(f"--job_name={job}", f"--task_index={index}")
    command = Path(f"/proc/{victim}/cmdline").read_text(encoding="utf-8")
    os.kill(victim, signal.SIGKILL)
    assert training.wait().code == 0, training.out
    again = f"{job} {index} failed with exit code 137 (SIGKILL); starting it again in 1 s (1 of 3)"
    assert again in training.out
    assert training.left_running() == []
    for address in re.findall(r"127\.0\.0\.1:[0-9]+", command):
        ports.check_free(address)
    losses = updates_lost(training.out)
    assert bool(losses) == (not fault.survived), training.out
    assert all(lost <= EVERY for lost in losses)
    assert_evaluated(fault, finished(training), training.logdir)
    if fault.survived:
        fault.tell("train on, and end with 0")
        return
    lost = set(re.findall(r"^(\w+ \d+) failed with exit code 138", training.out, re.M))
    begun = f"start again with it ({', '.join(sorted(lost))})" if lost else "wait for it"
    fault.tell(f"{begun}, go on from the last checkpoint, and end with 0")


@pytest.mark.core
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_all_at_once(
    signum: signal.Signals,
    train: Any,
    recorded: Any,
    runtime: str,
    record_property: Callable[[str, Any], None],
) -> None:
    """As by systemd, `scancel` or `pkill`: the launcher, its tasks, and what serves these."""
    record_property("fault", [signum.name, "all at once", runtime])
    flags = [ENDLESS, "--checkpoint_every=1000000", "--log_every=10", f"--runtime={runtime}"]
    training = train("--strategy=ps", *flags, alone=True)  # With a fork server of its own.
    training.wait_until_it_says(r"^\[worker 0\] Step: .*Validation-")  # It has built all graphs.
    everybody = training.offspring()
    for _ in range(3):
        for pid in everybody:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        time.sleep(0.03)
    assert training.wait().code == 128 + signum
    # The sender has its time, in which a busy machine may not even have loaded MLflow.
    senders = training.offspring("compat.tracking.mlflow.sender")
    filters = training.offspring("in_note")  # Of what the sender's TensorFlow would print.
    assert set(training.offspring()) <= {*senders, *filters}
    assert not re.search("Traceback|Error", training.out + training.err), training.err
    found = recorded(training.logdir)
    lines = (training.logdir / "tracking.jsonl").read_text(encoding="utf-8").splitlines()
    ends = [json.loads(line) for line in lines if '"end"' in line]
    assert [end["status"] for end in ends] == ["KILLED"]
    assert training.left_running() or found.run[1] == "KILLED"
    assert found.checkpoints[-1] >= last_step(training.out)
    record_property("outcome", f"save what they have reached, and end with {128 + signum}")


def test_killed_chief_of_its_own(tasks: Any, recorded: Any, runtime: str) -> None:
    """Not a cell of the table: the job "chief" of TF_CONFIG, in place of worker 0."""
    cluster = tasks(chief=1, ps=1, worker=1)
    running: dict[str, Any] = {}
    for job in cluster.hosts:
        config = {"cluster": cluster.hosts, "task": {"type": job, "index": 0}}
        logdir = running["chief"].logdir if running else None
        flags = [*FLAGS, ENDLESS, TIMEOUT, f"--runtime={runtime}"]
        env = {"TF_CONFIG": json.dumps(config)}
        running[job] = cluster.start(job, 0, *flags, env=env, logdir=logdir)
    try:
        running["chief"].wait_until_it_says("^Step: ").send(signal.SIGKILL)
        for job, training in running.items():
            assert training.wait().code == (-signal.SIGKILL if job == "chief" else LOST)
            assert training.left_running() == []
            ports.check_free(cluster.hosts[job][0])
        assert "/job:chief/task:0" in running["ps"].err.splitlines()[-1]
        # What the worker misses first may be the parameter server, which ends as well.
        named = "/job:(chief|ps)/task:0"
        assert re.search(named, running["worker"].err.splitlines()[-1])
        assert not any("Traceback" in training.err for training in running.values())
        assert recorded(running["chief"].logdir).run[1] == "FAILED"
    finally:
        for training in running.values():
            training.end()
