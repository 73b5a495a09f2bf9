"""Trainings of several processes, on each runtime: by one command, by the card, by TF_CONFIG."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np
import pytest

from experiments.evaluation import selection
from experiments.launching import task_record

pytestmark = [pytest.mark.cluster, pytest.mark.feature]
SECONDS_TO_END = 60  # Of a busy machine; who waits for a lost task waits longer.
PREFIX = re.compile(r"\[(ps 0|worker [01])\] ")
LINE = re.compile(r"Step: (\d+),  Epoch: ([ \d]\d),  Batch: ([ \d]{3}) of  12,  Cost: ")
SHAPES = {
    "hidden/kernel": (784, 100),
    "hidden/bias": (100,),
    "output/kernel": (100, 10),
    "output/bias": (10,),
}
MOMENTA = {f"{name}/Momentum": shape for name, shape in SHAPES.items()}


def seconds_at_the_end(training: Any, chief: Any, recorded: Any) -> float:
    """Returns how long after the last point of the curves a process ended.

    Or, where that is later, after MLflow had found the run: loading it may take longer than these
    trainings, and the chief waits for it.
    """
    times = [event.wall_time for event in recorded.events if event.step and event.summary.value]
    return float(training.ended - max(*times, (chief.logdir / "mlflow_run_id").stat().st_mtime))


@pytest.fixture(scope="module")
def launched_by_runtime(train: Any, runtimes: list[str]) -> dict[str, Any]:
    """A whole cluster on this machine, by one command: 4 epochs of 12 batches on 2 workers."""
    flags = ["--strategy=ps", "--num_ps=1", "--num_workers=2", "--epochs=4", "--summary_every=5"]
    flags += ["--optimizer=momentum", "--learning_rate=0.1", "--log_device_placement"]
    return {name: train(*flags, f"--runtime={name}").wait() for name in runtimes}


@pytest.fixture(scope="module")
def launched(launched_by_runtime: dict[str, Any], runtime: str) -> Any:
    """The one of them on each runtime."""
    return launched_by_runtime[runtime]


@pytest.fixture(scope="module")
def last_checkpoints(
    launched_by_runtime: dict[str, Any], record: Any, read_weights: Any
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Step and values of the last checkpoint on each runtime; one process reads them all."""
    logdirs = [training.logdir for training in launched_by_runtime.values()]
    steps = [record(logdir).checkpoints[-1] for logdir in logdirs]
    return dict(zip(launched_by_runtime, zip(steps, read_weights(*zip(logdirs, steps)))))


def by(task: str, training: Any) -> list[str]:
    """Returns the lines that one task has said."""
    return [line[len(task) + 3 :] for line in training.out.splitlines() if f"[{task}] " in line]


def test_all_processes_end_by_themselves(launched: Any, record: Any) -> None:
    assert launched.code == 0, launched.out
    assert launched.err == ""
    assert seconds_at_the_end(launched, launched, record(launched.logdir)) < SECONDS_TO_END
    assert launched.left_running() == []


def test_each_line_says_whose_it_is(launched: Any) -> None:
    tasks = [PREFIX.match(line) for line in launched.out.splitlines()]
    assert all(tasks)
    names = {match.group(0) for match in tasks if match}
    assert names >= {"[ps 0] ", "[worker 0] "}
    serving = r"/job:ps/task:0 serves at 127\.0\.0\.1:\d+ until training ends"
    assert any(re.fullmatch(serving, line) for line in by("ps 0", launched))


def test_only_the_chief_reports(launched: Any) -> None:
    chief = by("worker 0", launched)
    assert chief[chief.index("done") + 1].startswith("TensorBoard: ")
    for task in ("ps 0", "worker 1"):
        assert not [line for line in by(task, launched) if LINE.match(line) or line == "done"]


def test_lines(launched: Any, runtime: str) -> None:
    found = [LINE.match(line) for line in by("worker 0", launched)]
    numbers = [tuple(int(match.group(i)) for i in (1, 2, 3)) for match in found if match]
    steps = [step for step, _, _ in numbers]
    assert steps == sorted(set(steps))
    for step, epoch, batch in numbers:
        assert batch == 12
        assert step // 2 >= 12 * (epoch - 1) + batch or step >= 96
    # On the legacy runtime the last updates may all be another worker's.
    assert numbers[-1][1:] == (4, 12) or runtime == "legacy"


def test_a_coordinator_evaluates_at_the_end_of_each_epoch(
    launched_by_runtime: dict[str, Any], record: Any
) -> None:
    """It schedules ahead of the updates that it has seen, but not over an evaluation."""
    if "modern" not in launched_by_runtime:
        pytest.skip("this release has no coordinator")
    launched = launched_by_runtime["modern"]
    ends = [24, 48, 72, 96]
    assert [evaluation.step for evaluation in selection.read(str(launched.logdir))] == ends
    points = record(launched.logdir).points
    assert [step for step, _ in points["validation/cost"]] == ends
    lines = [line for line in by("worker 0", launched) if "Validation-Cost: " in line]
    found = [LINE.match(line) for line in lines]
    assert [int(match.group(1)) for match in found if match] == ends, lines


def places_of_variables(lines: list[str]) -> dict[str, str]:
    """Returns the task that has each variable, from the table of --log_device_placement."""
    header = [i for i, line in enumerate(lines) if re.fullmatch(r"variable +shape +device", line)]
    assert len(header) == 1
    rows = [line.split() for line in lines[header[0] + 1 : header[0] + 10]]
    places = {row[0]: re.sub("/replica:0|/device:CPU:0", "", row[-1]) for row in rows}
    assert set(places) == {"global_step", *SHAPES, *MOMENTA}
    return places


def test_variables_are_on_the_parameter_server(launched: Any) -> None:
    assert set(places_of_variables(by("worker 0", launched)).values()) == {"/job:ps/task:0"}


def test_operations_are_shown_where_they_run(launched: Any, runtime: str) -> None:
    rows = [line.split(None, 2) for line in by("worker 0", launched)]
    places = {row[0]: row[2] for row in rows if len(row) == 3}
    worker = "/job:worker/task:0" if runtime == "legacy" else "(the worker that computes)"
    assert places["MatMul"] == worker
    assert places["MatMul/ReadVariableOp"].startswith("/job:ps/task:")


def test_one_record(launched: Any, record: Any, runtime: str) -> None:
    recorded = record(launched.logdir)
    assert len(recorded.event_files) == 1
    assert recorded.run[1] == "FINISHED"
    tags = dict(recorded.select("select key, value from tags"))
    assert tags["cluster"] == "1 ps, 2 worker"
    assert tags["runtime"] == runtime
    params = dict(recorded.select("select key, value from params"))
    expected = {"dataset": "digits", "optimizer": "momentum", "learning_rate": "0.1", "epochs": "4"}
    assert {name: params[name] for name in expected} == expected
    for tag, points in recorded.points.items():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps)), tag


def test_it_learns_and_both_records_say_so(launched: Any, record: Any) -> None:
    recorded = record(launched.logdir)
    assert recorded.select("select 1 from metrics where key like 'workload/worker-0/cpu_%'")
    query = "select step, value from metrics where key = 'test/accuracy'"
    ((step, value),) = recorded.points["test/accuracy"]
    assert recorded.select(query) == [(step, value.simple_value)]
    assert value.simple_value > 0.8  # 0.95 as a rule, and 0.1 by chance.
    (tested,) = re.findall("Test-Accuracy: (.*)", "\n".join(by("worker 0", launched)))
    assert f"{value.simple_value:.2f} (" in tested


def test_checkpoint_holds_what_was_trained(
    last_checkpoints: dict[str, tuple[int, dict[str, Any]]], runtime: str
) -> None:
    step, values = last_checkpoints[runtime]
    shapes = {name: value.shape for name, value in values.items()}
    assert shapes == {"global_step": (), **SHAPES, **MOMENTA}
    assert values["global_step"] == step
    for name in [*SHAPES, *MOMENTA]:
        assert np.isfinite(values[name]).all(), name
        assert values[name].any(), name  # Biases and momenta begin as zeros.


def test_staleness(launched: Any, record: Any) -> None:
    points = record(launched.logdir).points["train/staleness"]
    values = [value.simple_value for _, value in points]
    assert all(value >= 0 and value == int(value) for value in values)


def test_epochs_are_those_of_each_worker(launched: Any, record: Any, runtime: str) -> None:
    updates = record(launched.logdir).checkpoints[-1]
    assert 4 * 12 * 2 <= updates <= 4 * 12 * 2 + (runtime == "legacy")


def test_tasks_and_their_updates_are_recorded(launched: Any, record: Any, runtime: str) -> None:
    events = list(task_record.read(str(launched.logdir)))
    ends = {event["task"]: event["code"] for event in events if event["event"] == "end"}
    assert ends == {"ps 0": 0, "worker 0": 0, "worker 1": 0}
    counts = {e["task"]: e["count"] for e in events if e["event"] == "updates"}
    assert set(counts) <= {"worker 0", "worker 1"}
    saved = record(launched.logdir).checkpoints[-1]
    # The other worker's last one may come while the chief saves.
    assert saved <= sum(counts.values()) <= saved + (runtime == "legacy")
    samples = launched.logdir.glob("system/*/tracking.jsonl")
    assert {path.parent.name for path in samples} == {task.replace(" ", "-") for task in ends}


@pytest.fixture(scope="module")
def by_hand(tasks: Any, runtime: str) -> dict[str, Any]:
    """One process a task, workers first, each with a log folder of its own: 31 updates."""
    cluster = tasks(ps=2, worker=2)
    flags = ["--max_steps=31", "--summary_every=1", f"--runtime={runtime}"]
    flags += ["--optimizer=momentum", "--log_device_placement"]
    running = {
        "worker 1": cluster.start("worker", 1, *flags),
        "worker 0": cluster.start("worker", 0, *flags),
    }
    running["worker 0"].wait_until_it_says("^waiting for /job:ps/task:0 at 127.0.0.1:")
    running["ps 1"] = cluster.start("ps", 1, *flags)
    running["ps 0"] = cluster.start("ps", 0, *flags)
    return {name: training.wait() for name, training in running.items()}


@pytest.mark.endings
@pytest.mark.once
def test_tasks_come_in_any_order_and_end_by_themselves(
    by_hand: dict[str, Any], record: Any
) -> None:
    chief = by_hand["worker 0"]
    recorded = record(chief.logdir)
    for training in by_hand.values():
        assert training.code == 0, training.err
        assert training.err == ""
        assert seconds_at_the_end(training, chief, recorded) < SECONDS_TO_END
        assert training.left_running() == []


@pytest.mark.endings
@pytest.mark.once
def test_only_the_chief_writes(by_hand: dict[str, Any]) -> None:
    assert list(by_hand["worker 0"].logdir.glob("events.out.tfevents.*"))
    for name in ("ps 0", "ps 1", "worker 1"):
        assert os.listdir(by_hand[name].logdir) == []
        found = sorted(os.listdir(by_hand[name].folder))
        assert found == ["mlflow.db", "stderr", "stdout"]  # The first was there before.


@pytest.mark.endings
@pytest.mark.once
def test_variables_are_spread_over_the_parameter_servers(by_hand: dict[str, Any]) -> None:
    places = places_of_variables(by_hand["worker 0"].out.splitlines())
    assert set(places.values()) == {"/job:ps/task:0", "/job:ps/task:1"}
    for name in SHAPES:
        assert places[f"{name}/Momentum"] == places[name]


@pytest.mark.endings
@pytest.mark.once
def test_updates_are_counted(by_hand: dict[str, Any], record: Any, runtime: str) -> None:
    recorded = record(by_hand["worker 0"].logdir)
    # On the legacy runtime workers count for themselves: one may be over by an update.
    assert recorded.checkpoints[-1] in ([31, 32] if runtime == "legacy" else [31])
    ((step, _),) = recorded.points["test/accuracy"]
    assert step == recorded.checkpoints[-1]


@pytest.mark.long
@pytest.mark.endings
@pytest.mark.once
def test_tf_config_with_a_chief(tasks: Any, record: Any, runtime: str) -> None:
    cluster = tasks(chief=1, ps=1, worker=1)
    running = {}
    for job in ("chief", "ps", "worker"):
        config = {"cluster": cluster.hosts, "task": {"type": job, "index": 0}}
        env = {"TF_CONFIG": json.dumps(config)}
        running[job] = cluster.start(job, 0, "--max_steps=24", f"--runtime={runtime}", env=env)
    for job, training in running.items():
        assert training.wait().code == 0, training.err
        assert training.err == ""
        assert ("\ndone\n" in training.out) == (job == "chief")
    recorded = record(running["chief"].logdir)
    assert recorded.run[1] == "FINISHED"
    tags = dict(recorded.select("select key, value from tags"))
    assert tags["cluster"] == "1 chief, 1 ps, 1 worker"
    assert recorded.checkpoints[-1] in ([24, 25] if runtime == "legacy" else [24])


@pytest.mark.long
@pytest.mark.once
def test_updates_of_its_own_are_those_of_a_process_alone(
    train: Any, local: Any, record: Any, read_weights: Any, runtime: str
) -> None:
    """Of one worker, which fetches the variables, makes four updates and pushes what is changed."""
    flags = ["--strategy=ps", "--num_ps=1", "--num_workers=1", f"--runtime={runtime}"]
    flags += ["--epochs=4", "--learning_rate=0.5", "--communication_period=4"]
    training = train(*flags, "--log_device_placement").wait()
    assert training.code == 0, training.out
    own = [line for line in by("worker 0", training) if "/copy/ResourceApply" in line]
    assert len(own) == 4 * len(SHAPES)
    assert not [line for line in own if "/job:ps" in line]
    assert record(training.logdir).checkpoints[-1] == 48
    theirs, alone = read_weights((training.logdir, 48), (local.logdir, 48))
    assert set(theirs) == set(alone)
    for name, values in alone.items():
        np.testing.assert_allclose(theirs[name], values, atol=1e-4, err_msg=name)
    points = [dict(record(run.logdir).points["test/accuracy"]) for run in (training, local)]
    assert points[0][48].simple_value == pytest.approx(points[1][48].simple_value, abs=0.01)


# On every line, tests/conformance has the numbers of such updates.
@pytest.mark.once
@pytest.mark.parametrize("aggregated", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_synchronous_updates_are_those_of_one_worker(
    train: Any, record: Any, aggregated: int
) -> None:
    """Also if an update needs the gradient of one of them only, and the other is a backup."""
    flags = ["--strategy=ps", "--num_ps=1", "--num_workers=2", "--runtime=legacy", "--sync"]
    flags.append(f"--replicas_to_aggregate={aggregated}")
    training = train(*flags, "--epochs=2", "--summary_every=1").wait()
    assert training.code == 0, training.out
    assert training.left_running() == []
    recorded = record(training.logdir)
    # A backup worker completes updates while the chief writes its checkpoint, even all of them.
    assert 12 <= recorded.checkpoints[0] <= recorded.checkpoints[-1] == 24
    assert recorded.run[1] == "FINISHED"
    assert recorded.points["test/accuracy"][-1][0] == 24
    assert "train/staleness" not in recorded.points
