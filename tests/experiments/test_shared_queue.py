"""Workers that count together: every number once, and every process ends by itself."""

from __future__ import annotations

import re
import runpy
import signal
from pathlib import Path
from typing import Any

import pytest

from compat.cluster import ports

pytestmark = [pytest.mark.once, pytest.mark.long]
refusals = runpy.run_path(str(Path(__file__).with_name("programs") / "refusals.py"))["refusals"]
MODULE = "experiments.classics.shared_queue"
WORKERS = 3
INCREMENTS = 150
TOTAL = list(range(1, WORKERS * INCREMENTS + 1))


@pytest.fixture(scope="module")
def counted(start: Any, runtime: str) -> Any:
    """A whole cluster on this machine, when it has ended."""
    flags = [f"--num_workers={WORKERS}", f"--increments={INCREMENTS}", f"--runtime={runtime}"]
    return start(*flags, module=MODULE).wait()


@pytest.mark.cluster
@pytest.mark.endings
class TestWholeCluster:
    def test_it_ends_well(self, counted: Any) -> None:
        assert (counted.code, counted.err) == (0, "")
        assert counted.out.endswith(f"queue: {len(TOTAL)} numbers, 1 to {len(TOTAL)}, each once\n")

    def test_nothing_is_left_running(self, counted: Any) -> None:
        assert counted.left_running() == []

    def test_no_number_is_lost_or_doubled(self, counted: Any) -> None:
        told = re.findall(r"\] worker (\d+) enqueued (\d+)$", counted.out, re.MULTILINE)
        assert sorted(int(number) for _, number in told) == TOTAL
        queued = re.findall(r"queue, from worker (\d+): ([\d ]+)$", counted.out, re.MULTILINE)
        assert sorted(int(number) for _, listed in queued for number in listed.split()) == TOTAL
        assert {(w, number) for w, listed in queued for number in listed.split()} == set(told)

    def test_each_worker_does_its_part(self, counted: Any) -> None:
        for worker in range(WORKERS):
            told = re.findall(rf"\] worker {worker} enqueued \d+$", counted.out, re.MULTILINE)
            assert len(told) == INCREMENTS


@pytest.mark.cluster
@pytest.mark.slow
def test_the_docs_show_what_is_printed(start: Any, page: Any) -> None:
    shown = page("seeds/004-shared-queue.md")
    done = start(*shown.flags, module=MODULE).wait()
    assert (done.code, done.err) == (0, "")
    shown.assert_shows(done.out)


class Tasks:
    """One parameter server and two workers, started one by one."""

    def __init__(self, start: Any, *flags: str) -> None:
        self._start, self._flags = start, flags
        self._ports = {task: ports.reserve() for task in (("ps", 0), ("worker", 0), ("worker", 1))}
        self.addresses = {task: port.address for task, port in self._ports.items()}

    def start(self, job: str, index: int, *flags: str) -> Any:
        a = self.addresses
        hosts = [f"--ps_hosts={a['ps', 0]}", f"--worker_hosts={a['worker', 0]},{a['worker', 1]}"]
        env, pass_fds = self._ports[job, index].pass_to_child()
        flags = (*self._flags, f"--job_name={job}", f"--task_index={index}", *hosts, *flags)
        task = self._start(*flags, module=MODULE, env=env, pass_fds=pass_fds)
        self._ports[job, index].release()
        return task


@pytest.mark.cluster
@pytest.mark.slow
def test_a_worker_that_never_comes(start: Any, runtime: str) -> None:
    tasks = Tasks(start, f"--runtime={runtime}", "--increments=3", "--rendezvous_timeout=12")
    serving, chief = tasks.start("ps", 0), tasks.start("worker", 0)
    assert chief.wait().code == 138
    assert chief.err.count("\n") == 1, chief.err
    if runtime == "legacy":
        assert "error: waited 12 s for the queue to hold 6 numbers, it is at 3; see" in chief.err
    else:
        address = tasks.addresses["worker", 1]
        expected = f"error: no connection within 12 s to /job:worker/task:1 at {address}: refused"
        assert expected in chief.err
    # A chief that failed may be started again, so the parameter server waits for it.
    assert serving.wait().code == 138
    address = tasks.addresses["worker", 0]
    expected = f"error: no connection within 12 s to /job:worker/task:0 at {address}: refused"
    assert expected in serving.err


@pytest.mark.cluster
@pytest.mark.endings
def test_a_lost_parameter_server(start: Any, runtime: str) -> None:
    flags = [f"--runtime={runtime}", "--increments=100000", "--rendezvous_timeout=30"]
    tasks = Tasks(start, *flags)
    serving, other = tasks.start("ps", 0), tasks.start("worker", 1)
    chief = tasks.start("worker", 0).wait_until_it_says("worker 0 enqueued")
    serving.send(signal.SIGKILL)
    sentence = f"error: lost /job:ps/task:0 at {tasks.addresses['ps', 0]}; its state is lost"
    assert chief.wait().code == 138
    assert sentence in chief.err
    assert chief.err.count("\n") == 1, chief.err
    # On the modern runtime it serves: it waits for another chief, as long as it may.
    assert other.wait().code == 138


@pytest.mark.cluster
@pytest.mark.slow
def test_increments_that_differ(start: Any) -> None:
    tasks = Tasks(start, "--runtime=legacy")
    serving, chief = tasks.start("ps", 0), tasks.start("worker", 0, "--increments=7")
    assert chief.wait().code == 2
    assert chief.err == (
        "error: --increments=7 is not what other tasks were given; start all with the same number\n"
    )
    assert serving.wait().code == 138


PS = "--ps_hosts=127.0.0.1:2222"
TWO_WORKERS = "--worker_hosts=127.0.0.1:2223,127.0.0.1:2224"


WRONG = [
    (["--num_workers=0"], "--num_workers=0 is out of range; give 1 to 100000"),
    (["--increments=0"], "--increments=0 is out of range; give 1 to 100000"),
    (["--increments=-3"], "--increments=-3 is out of range; give 1 to 100000"),
    (["--increments=five"], "--increments=five is not an integer; "),
    (["--rendezvous_timeout=0"], "--rendezvous_timeout=0 is out of range; give seconds"),
    (["count"], "argument 'count' is not a flag; flags look like --name=value"),
    (["--job_name=ps", PS], "--worker_hosts is missing beside --job_name=ps"),
    ([PS, TWO_WORKERS, "--job_name=wrker"], "job 'wrker' is not in the cluster"),
    ([PS, TWO_WORKERS, "--job_name=worker", "--task_index=2"], "task index 2 of job 'worker'"),
]


def test_wrong_flags_are_said_in_one_line(tmp_path: Path) -> None:
    lines = refusals(MODULE, [(flags, {}) for flags, _ in WRONG], tmp_path)
    for (_, sentence), line in zip(WRONG, lines):
        assert line.startswith(sentence)
