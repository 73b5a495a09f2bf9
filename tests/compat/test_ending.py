"""Tasks that serve end by themselves, whatever becomes of those who train; nobody aborts."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

import pytest

if TYPE_CHECKING:
    from tests.conftest import Process, StartCluster

pytestmark = [pytest.mark.cluster, pytest.mark.endings, pytest.mark.once, pytest.mark.long]

# Within which those who serve have ended, after the last of those who train, also where the machine
# has much else to do; who waits for a lost task waits twice as long.
END_SECS = 60.0
GRACE_SECS = 8.0  # For which a parameter server waits for the others once the chief is done.
Tasks = Dict[str, "Process"]


@pytest.fixture(scope="module")
def failed(start_cluster: StartCluster, programs: Path, runtime: str) -> Tasks:
    """A training whose chief raises an error after three updates."""
    with start_cluster(programs / "task.py", runtime, ps=1, worker=2) as cluster:
        tasks = {
            "ps": cluster.start("ps"),
            "chief": cluster.start("worker", 0, steps=1000, fails=True),
            "worker": cluster.start("worker", 1, steps=20),
        }
        for task in tasks.values():
            task.wait()
    return tasks


class TestFailedTraining:
    def test_the_error_is_the_one_of_the_program(self, failed: Tasks) -> None:
        assert failed["chief"].code == 1
        assert failed["chief"].complaints.rstrip().endswith("ValueError: the body failed")

    @pytest.mark.parametrize("name", ["ps", "worker"])
    def test_the_others_end_well(self, failed: Tasks, name: str) -> None:
        assert failed[name].code == 0
        assert failed[name].ended - failed["chief"].ended < END_SECS


def test_a_server_that_is_silent_at_the_end_is_left_behind(
    start_cluster: StartCluster, programs: Path, runtime: str
) -> None:
    """TensorFlow waits for it, when it closes a session or what a coordinator has there."""
    with start_cluster(programs / "task.py", runtime, ps=2, worker=2) as cluster:
        tasks = [cluster.start("ps", 0), cluster.start("ps", 1)]
        for index in range(2):
            tasks.append(cluster.start("worker", index, steps=20, idle=3))
        silent, chief, *_ = tasks[1:]
        for trainer in tasks[2:] if runtime == "legacy" else [chief]:
            trainer.wait_until_it_says("idle")
        silent.send(signal.SIGSTOP)
        stopped = time.monotonic()
        assert max(chief.report["steps"]) >= 20
        assert not re.search("Traceback|Exception|Fatal|E0000.*eager", chief.complaints)
        assert chief.ended - stopped < END_SECS
        assert [task.wait().code for task in tasks if task is not silent] == [0] * 3


@pytest.fixture(scope="module")
def killed(start_cluster: StartCluster, programs: Path, runtime: str) -> Tasks:
    """A training of whose workers one is killed."""
    with start_cluster(programs / "task.py", runtime, ps=1, worker=2) as cluster:
        settings = {"steps": 160, "pause": 0.05}
        tasks = {
            "ps": cluster.start("ps"),
            "chief": cluster.start("worker", 0, **settings),
            "worker": cluster.start("worker", 1, **settings),
        }
        tasks["worker"].wait_until_it_says("training" if runtime == "legacy" else "serves at")
        tasks["chief"].wait_until_it_says("training")
        tasks["worker"].send(signal.SIGKILL)
        for task in tasks.values():
            task.wait()
    return tasks


class TestKilledWorker:
    def test_the_chief_trains_to_the_end(self, killed: Tasks) -> None:
        assert killed["worker"].code == -signal.SIGKILL
        assert max(killed["chief"].report["steps"]) >= 160

    def test_the_parameter_server_ends(self, killed: Tasks) -> None:
        assert killed["ps"].code == 0
        assert killed["ps"].ended - killed["chief"].ended < GRACE_SECS + END_SECS

    def test_it_says_whom_it_missed(self, killed: Tasks, runtime: str) -> None:
        missed = "training has ended; trainers [1] did not report their end"
        # On the modern runtime the worker would have reported nothing: it does not train.
        assert (missed in killed["ps"].said) == (runtime == "legacy")


def test_a_slow_worker_ends_its_training_after_the_chief(
    start_cluster: StartCluster, programs: Path
) -> None:
    """On the legacy runtime, where it trains by itself; the chief needs a few steps alone."""
    with start_cluster(programs / "task.py", "legacy", ps=1, worker=2) as cluster:
        ps, chief = cluster.start("ps"), cluster.start("worker", 0, steps=1, idle=1)
        worker = cluster.start("worker", 1, steps=250, pause=0.06)
        assert [task.wait().code for task in (ps, chief, worker)] == [0] * 3
    assert worker.ended - chief.ended > GRACE_SECS
    assert max(worker.report["steps"]) == 250
    assert "the chief is done; serving trainers [1], which train on" in ps.said


@pytest.fixture(scope="module")
def interrupted(start_cluster: StartCluster, programs: Path, runtime: str) -> list[Any]:
    """Who serves, each interrupted while there is no training yet, and how long its end took."""
    with start_cluster(programs / "task.py", runtime, ps=1, worker=2) as cluster:
        serving = [cluster.start("ps")]
        if runtime == "modern":
            serving.append(cluster.start("worker", 1))
        ends = []
        for task in serving:
            task.wait_until_it_says("serves at")
            time.sleep(1)
            begin = time.monotonic()
            task.send(signal.SIGINT)
            ends.append((task.wait(), task.ended - begin))
    return ends


def test_ctrl_c_ends_who_serves_at_once(interrupted: list[Any]) -> None:
    for task, seconds in interrupted:
        assert task.complaints.rstrip().endswith("KeyboardInterrupt")
        assert task.code in (1, -signal.SIGINT)  # By the release of Python.
        assert seconds < END_SECS


@pytest.mark.parametrize("trainings", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_quick_trainings_end_without_an_abort(
    start_cluster: StartCluster, programs: Path, runtimes: list[str], trainings: int
) -> None:
    """One after the other; a thread that is inside TensorFlow when Python ends would abort."""
    for number in range(trainings):
        runtime = runtimes[number % len(runtimes)]
        with start_cluster(programs / "task.py", runtime, ps=1, worker=1) as cluster:
            for task in [cluster.start("ps"), cluster.start("worker", steps=3)]:
                task.wait()
                assert (task.code, "terminate called" in task.complaints) == (0, False)
