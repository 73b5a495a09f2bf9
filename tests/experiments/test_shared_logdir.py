"""`--shared_logdir`: nothing is trained unless all tasks see the chief's log folder."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.once]
FLAGS = ["--shared_logdir", "--max_steps=20"]
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]


@pytest.fixture(scope="module")
def apart(tasks: Any, runtime: str, tmp_path_factory: Any) -> dict[str, Any]:
    """A cluster whose worker 1 has a folder of its own."""
    folder: Path = tmp_path_factory.mktemp("apart")
    cluster = tasks(ps=1, worker=2)
    running = {}
    for job, index in TASKS:
        logdir = folder / ("own" if index == 1 else "shared")
        running[f"{job} {index}"] = cluster.start(
            job, index, *FLAGS, f"--runtime={runtime}", logdir=logdir
        )
    return {name: training.wait() for name, training in running.items()}


@pytest.mark.endings
def test_all_tasks_end_and_name_the_one_that_sees_another_folder(apart: dict[str, Any]) -> None:
    chief, other = apart["worker 0"], apart["worker 1"]
    line = (
        f"error: what /job:worker/task:0 writes to {chief.logdir} is not seen by "
        f"/job:worker/task:1 at its {other.logdir}; mount one folder on all machines and name it "
        "with --logdir, or leave out --shared_logdir\n"
    )
    for training in apart.values():
        assert (training.code, training.err) == (2, line), training.out


@pytest.mark.endings
def test_nothing_is_left_behind(apart: dict[str, Any]) -> None:
    assert not apart["worker 0"].logdir.exists()
    assert not apart["worker 1"].logdir.exists()


@pytest.mark.slow
def test_one_folder_is_enough(tasks: Any, tmp_path: Path, runtimes: list[str]) -> None:
    cluster = tasks(ps=1, worker=2)
    flags = [*FLAGS, f"--runtime={runtimes[-1]}"]
    started = [cluster.start(job, i, *flags, logdir=tmp_path / "log") for job, i in TASKS]
    for training in started:
        assert training.wait().code == 0, training.err
        assert training.err == ""
    waits = "/job:ps/task:0 waits until the chief has seen that all tasks share"
    assert started[0].out.startswith(waits)
    assert not list((tmp_path / "log").glob(".seen-by-all-*"))
    assert list((tmp_path / "log").glob("model.ckpt-*"))


@pytest.mark.slow
def test_chief_that_gives_up_is_waited_for_by_nobody(
    tasks: Any, tmp_path: Path, runtime: str
) -> None:
    cluster = tasks(ps=1, worker=2)
    flags = [*FLAGS, f"--runtime={runtime}", "--rendezvous_timeout=10"]
    ps = cluster.start("ps", 0, *flags, logdir=tmp_path / "log")
    ps.wait_until_it_says("waits until the chief has seen")
    chief = cluster.start("worker", 0, *flags, logdir=tmp_path / "log").wait()
    lost = f"within 10 s to /job:worker/task:1 at {cluster.hosts['worker'][1]}: refused"
    for training in (chief, ps.wait()):
        assert training.code == 138
        assert lost in training.err
        assert training.err.count("\n") == 1


@pytest.mark.slow
def test_chief_that_was_killed_is_not_waited_for_without_end(
    tasks: Any, tmp_path: Path, runtimes: list[str]
) -> None:
    cluster = tasks(ps=1, worker=2)
    flags = [*FLAGS, f"--runtime={runtimes[-1]}", "--rendezvous_timeout=20"]
    ps = cluster.start("ps", 0, *flags, logdir=tmp_path / "log")
    ps.wait_until_it_says("waits until the chief has seen")
    chief = cluster.start("worker", 0, *flags, logdir=tmp_path / "log")
    chief.wait_until_it_says("waiting for /job:worker/task:1")
    chief.send(signal.SIGKILL)
    assert ps.wait(100).code == 138
    assert f"/job:worker/task:0 at {cluster.hosts['worker'][0]} did not report within" in ps.err
    assert ps.err.count("\n") == 1


@pytest.mark.slow
def test_tasks_have_to_agree_on_the_flag(tasks: Any, tmp_path: Path, runtime: str) -> None:
    cluster = tasks(ps=1, worker=1)
    flags = [f"--runtime={runtime}", "--max_steps=20"]
    ps = cluster.start("ps", 0, *flags, logdir=tmp_path / "log")
    chief = cluster.start("worker", 0, *flags, "--shared_logdir", logdir=tmp_path / "log").wait()
    assert chief.code == 2
    assert "/job:ps/task:0 did not report its log folder; start all tasks with" in chief.err
    assert ps.wait().left_running() == []
