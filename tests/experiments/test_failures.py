"""What goes wrong while a training runs: it is said in one line, recorded, and stops all tasks."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.conftest import ending

pytestmark = [pytest.mark.endings, pytest.mark.once]

ENDLESS = "--max_steps=1000000"


def assert_one_line(text: str, pattern: str) -> None:
    assert re.fullmatch(f"error: {pattern}\n", text), text


@pytest.fixture(scope="module")
def diverged(train: Any, runtimes: list[str]) -> dict[str, Any]:
    """On each runtime, a training whose second update makes numbers too large for their type."""
    flags = ["--learning_rate=1e38", "--steps_per_loop=1", "--checkpoint_every=1", "--epochs=2"]
    running = {name: train(*flags, f"--runtime={name}") for name in runtimes}
    return {name: training.wait() for name, training in running.items()}


def test_cost_that_is_no_number_ends_the_training(
    diverged: dict[str, Any], record: Any, read_weights: Any, runtime: str
) -> None:
    training = diverged[runtime]
    assert training.code == 1
    assert_one_line(
        training.err,
        r"cost is nan at step 2, expected a finite number; the last good checkpoint stays; "
        r"lower --learning_rate=1e\+38, or see by --check_numerics whether .*",
    )
    assert training.left_running() == []
    recorded = record(training.logdir)
    assert recorded.run[1] == "FAILED"
    assert recorded.checkpoints == [1]
    (weights,) = read_weights((training.logdir, 1))
    assert all(np.isfinite(value).all() for value in weights.values())
    assert "done" not in training.out


def test_weights_that_are_no_numbers_are_not_saved(train: Any, record: Any) -> None:
    """The cost is that of before the update, so it is still a number when the weights are not."""
    training = train(
        "--learning_rate=3e38", "--model=cnn", "--max_steps=1", "--batch_size=2"
    ).wait()
    assert training.code == 1
    assert_one_line(
        training.err,
        r"variable \S+ has a value that is not finite; not saved; the last good checkpoint stays; "
        r"lower --learning_rate=3e\+38",
    )
    assert training.left_running() == []
    recorded = record(training.logdir)
    assert recorded.run[1] == "FAILED"
    assert recorded.checkpoints == []


def test_checkpoint_of_another_model_is_refused_and_kept(
    train: Any, locals_by_runtime: dict[str, Any], tmp_path: Path
) -> None:
    logdir = tmp_path / "log"
    source = locals_by_runtime["legacy"]
    assert source.left_running() == []  # Who sends the record adds and removes files there.
    shutil.copytree(str(source.logdir), str(logdir))
    before = {path: path.read_bytes() for path in logdir.rglob("*") if path.is_file()}
    training = train("--model=cnn", "--max_steps=60", logdir=logdir).wait()
    assert training.code == 2
    assert_one_line(
        training.err,
        rf"checkpoint {logdir}/model\.ckpt-48 is of another model or optimizer: "
        r"\S+ is missing; .*; "
        "choose another log folder, or the settings it was made with, or bring it over by "
        "python -m compat convert-checkpoint",
    )
    assert training.out == ""
    assert {path: path.read_bytes() for path in logdir.rglob("*") if path.is_file()} == before


@pytest.mark.long
@pytest.mark.cluster
def test_first_failure_stops_all(train: Any, record: Any, runtime: str) -> None:
    training = train("--strategy=ps", ENDLESS, f"--runtime={runtime}", "--max_restarts=0")
    training.wait_until_it_says(r"^\[worker 0\] Step: ")
    (worker,) = training.offspring("--job_name=worker", "--task_index=1")
    os.kill(worker, signal.SIGKILL)
    assert training.wait().code == 137
    assert training.left_running() == []
    said = "worker 1 failed with exit code 137 (SIGKILL); stopping ps 0, worker 0"
    assert said in training.out.splitlines()
    recorded = record(training.logdir)
    assert recorded.run[1] in ("KILLED", "FAILED")
    # What it says where the steps of the lost worker have held it up for too long.
    assert recorded.checkpoints or "no last checkpoint was written" in training.out, training.out


@pytest.mark.cluster
def test_sigterm_stops_all(train: Any, record: Any) -> None:
    training = train("--strategy=ps", ENDLESS)
    training.wait_until_it_says(r"^\[worker 0\] Step: ").send(signal.SIGTERM)
    assert training.wait().code == 143
    assert training.left_running() == []
    assert "got SIGTERM; stopping ps 0, worker 0, worker 1" in training.out.splitlines()
    recorded = record(training.logdir)
    assert recorded.run[1] == "KILLED"
    assert recorded.checkpoints


@pytest.mark.long
@pytest.mark.cluster
def test_sigterm_to_what_tasks_are_forked_from_stops_nothing(train: Any, runtime: str) -> None:
    flags = ["--num_workers=1", "--max_steps=300", f"--runtime={runtime}"]
    training = train("--strategy=ps", *flags, alone=True)  # With a server of its own.
    training.wait_until_it_says(r"^\[worker 0\] Step: ")
    (server,) = {
        parent(pid) for job in ("ps", "worker") for pid in training.offspring(f"--job_name={job}")
    }
    assert server != training.pid
    os.kill(server, signal.SIGTERM)
    assert training.wait().code == 0, training.out
    assert training.left_running() == []
    assert "failed" not in training.out


def parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def test_what_a_test_leaves_running_is_ended(start: Any, started: Any) -> None:
    with ending(started):
        training = start("--dataset=digits", ENDLESS)
        assert training.offspring()
    training.wait()
    assert training.offspring() == []


@pytest.mark.long
@pytest.mark.cluster
def test_tasks_that_are_asked_to_end_at_a_time_save_what_was_reached(
    tasks: Any, record: Any, runtime: str
) -> None:
    """As by Compose or Slurm; those first that the chief needs in order to save."""
    cluster = tasks(ps=1, worker=2)
    flags = [ENDLESS, "--checkpoint_every=1000000", "--log_every=10", f"--runtime={runtime}"]
    running = [cluster.start(*task, *flags) for task in (("ps", 0), ("worker", 1), ("worker", 0))]
    chief = running[-1].wait_until_it_says("^Step: .*Validation-")  # It has built all graphs.
    reached = max(map(int, re.findall("Step: ([0-9]+),", chief.out)))
    for task in running:
        task.send(signal.SIGTERM)
    assert [task.wait().code for task in running] == [143] * 3
    assert [task.left_running() for task in running] == [[]] * 3
    said = "".join(task.out + task.err for task in running)
    assert not re.search("Traceback|Fatal|error:", said), said
    recorded = record(chief.logdir)
    assert recorded.run[1] == "KILLED"
    assert recorded.checkpoints[-1] >= reached


@pytest.mark.cluster
def test_ctrl_c_while_the_tasks_come_up_stops_all(start: Any) -> None:
    training = start("--dataset=digits", "--strategy=ps", "--num_workers=1")
    training.wait_until_it_says("serves at").send(signal.SIGINT)
    assert training.wait().code == 130
    assert training.left_running() == []
    assert "Traceback" not in training.out + training.err


@pytest.mark.cluster
def test_lost_parameter_server_is_named(tasks: Any, record: Any, runtime: str) -> None:
    cluster = tasks(ps=1, worker=1)
    ps = cluster.start("ps", 0, f"--runtime={runtime}")
    worker = cluster.start(
        "worker", 0, ENDLESS, "--checkpoint_every=10", "--noeval_in_chief", f"--runtime={runtime}"
    )
    worker.wait_until_it_says("^Step: 24,")
    ps.send(signal.SIGKILL)
    assert worker.wait().code == 138
    (address,) = cluster.hosts["ps"]
    # TensorFlow may have its own say before.
    assert "Traceback" not in worker.err
    assert_one_line(
        worker.err.splitlines(keepends=True)[-1],
        f"lost /job:ps/task:0 at {address}; start it again and then this task: training resumes "
        "from the last checkpoint",
    )
    assert worker.left_running() == []
    recorded = record(worker.logdir)
    assert recorded.run[1] == "FAILED"
    assert recorded.checkpoints
