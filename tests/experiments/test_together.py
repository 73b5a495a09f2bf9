"""Workers that make each update together, without parameter servers: `--strategy=multi_worker`."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from tests.conftest import RUNTIMES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.once,
    pytest.mark.feature("sync"),
    pytest.mark.skipif("modern" not in RUNTIMES, reason="TensorFlow 1.x has no such strategy"),
]
FLAGS = ["--strategy=multi_worker", "--num_workers=2"]
ENDLESS = "--max_steps=100000"


@pytest.fixture(scope="module")
def resumed(train: Any) -> Any:
    """A training of 24 updates by two workers, and the same one gone on with to 60."""
    first = train(*FLAGS, "--max_steps=24").wait()
    assert first.code == 0, first.out
    second = train(*FLAGS, "--max_steps=60", "--steps_per_loop=60", logdir=first.logdir)
    return second.wait()


def test_a_training_is_gone_on_with(resumed: Any, record: Any) -> None:
    assert (resumed.code, resumed.err) == (0, "")
    assert resumed.left_running() == []
    recorded = record(resumed.logdir)
    assert recorded.checkpoints == [12, 24, 36, 48, 60]  # For evaluations, each at an epoch's end.
    assert [step for step, _ in recorded.points["test/accuracy"]] == [24, 60]
    assert recorded.run[1] == "FINISHED"
    tags = dict(recorded.select("select key, value from tags"))
    assert (tags["cluster"], tags["runtime"]) == ("2 worker", "modern")


def test_only_the_chief_says_how_it_goes(resumed: Any) -> None:
    lines = resumed.out.splitlines()
    assert "[worker 0] resuming from step 24 in " + str(resumed.logdir) in lines
    assert "[worker 0] done" in lines
    assert not [line for line in lines if line.startswith("[worker 1] Step: ")]


def test_a_stop_of_one_is_one_of_all(train: Any, record: Any) -> None:
    training = train(*FLAGS, ENDLESS, "--max_restarts=0")
    training.wait_until_it_says(r"^\[worker 0\] Step: ")
    (worker,) = training.offspring("--job_name=worker", "--task_index=1")
    os.kill(worker, signal.SIGTERM)
    assert training.wait().code == 143
    assert training.left_running() == []
    recorded = record(training.logdir)
    assert recorded.run[1] == "KILLED"
    assert recorded.checkpoints


def test_a_lost_worker_is_named(tasks: Any) -> None:
    cluster = tasks(worker=2)
    chief, worker = (
        cluster.start("worker", index, ENDLESS, strategy="multi_worker") for index in (0, 1)
    )
    chief.wait_until_it_says("^Step: 12,")
    worker.send(signal.SIGKILL)
    assert chief.wait(60).code == 138
    # TensorFlow 2.4 logs a line of its own before.
    assert chief.err.splitlines()[-1].startswith("error: lost /job:worker/task:1 at 127.0.0.1:")
    assert chief.err.count("error: ") == 1


@pytest.mark.slow
def test_a_cost_that_is_no_number_ends_all(train: Any) -> None:
    training = train(*FLAGS, "--max_steps=400", "--learning_rate=1e38").wait()
    assert training.code == 1
    assert training.left_running() == []
    assert "error: cost is nan at step" in training.out + training.err
    assert "lost" not in training.out + training.err


def test_two_trainings_never_mix(tasks: Any) -> None:
    cluster = tasks(worker=2)
    running = [
        cluster.start(
            "worker", i, "--rendezvous_timeout=20", f"--run_token={i}", strategy="multi_worker"
        )
        for i in (0, 1)
    ]
    for index, task in enumerate(running):
        name, address = f"/job:worker/task:{1 - index}", cluster.hosts["worker"][1 - index]
        assert task.wait().code == 138, task.err
        assert f"waiting for {name} at {address}: other cluster" in task.out
        # The first one to give up sees the other, who then sees nobody.
        assert re.fullmatch(
            f"error: no connection within 20 s to {name} at {address}: .*\n", task.err
        )
        assert task.left_running() == []
    why = "other cluster, give all tasks the same hosts and the same run token"
    assert any(why in task.err for task in running)
