"""Runs of estimators: what each task reads, how they end, and what the package has wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

HEAD = """
import json, logging, os, sys
import numpy as np
import compat
from compat import tf, tf1

compat.select_runtime(sys.argv[1])
E = compat.estimator
"""
# Each element is added to w, which the chief saves at the end.
SUM = (
    HEAD
    + """
config = E.RunConfig("model", save_checkpoints_steps=1000, log_step_count_steps=1000)
tasks, mine = config.num_worker_replicas, config.global_id_in_cluster
numbers = np.arange(1, 41)[mine::tasks]


def data():
    if sys.argv[2] == "constant":
        return {"x": tf.constant(numbers[0], tf.float32)}
    if sys.argv[2] == "same":
        mapped = tf1.data.Dataset.range(1, 41).map(lambda x: {"x": tf.cast(x, tf.float32)})
        return mapped.repeat()
    place = json.loads(os.environ["TF_CONFIG"])["task"]
    index = 0 if place["type"] == "chief" else 1 + place["index"]
    whole = tf1.data.Dataset.range(1, 41).shard(tasks, index)
    return whole.map(lambda x: {"x": tf.cast(x, tf.float32)})


def model_fn(features, labels, mode):
    w = tf1.get_variable("w", initializer=0.0)
    loss = -w * features["x"]
    opt = tf1.train.GradientDescentOptimizer(1.0, use_locking=True)
    train = opt.minimize(loss, tf1.train.get_global_step())
    return E.EstimatorSpec(mode, loss=loss, train_op=train)


estimator = E.Estimator(model_fn, config=config)
steps = None if sys.argv[2] == "shards" else 40  # Else the end of the data ends the run.
E.train_and_evaluate(estimator, E.TrainSpec(data, max_steps=steps), E.EvalSpec(data, steps=1))
if config.task_type == "chief":
    print("sum", estimator.get_variable_value("w"), estimator.get_variable_value("global_step"))
"""
)
ENDS = (
    HEAD
    + """
def model_fn(features, labels, mode):
    w = tf1.get_variable("w", initializer=0.0)
    loss = tf1.reduce_mean(tf1.square(features["x"] * w - labels))
    opt = tf1.train.GradientDescentOptimizer(0.3)
    train = opt.minimize(loss, tf1.train.get_global_step())
    return E.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    one = {"x": np.ones(4, np.float32)}, np.ones(4, np.float32)
    return tf1.data.Dataset.from_tensors(one).repeat(30)


config = E.RunConfig("model", save_checkpoints_steps=10)
E.train_and_evaluate(
    E.Estimator(model_fn, config=config),
    E.TrainSpec(data, max_steps=None),  # The end of the data ends the run.
    E.EvalSpec(data, steps=2, start_delay_secs=1, throttle_secs=600),
)
print("end of", json.loads(os.environ["TF_CONFIG"])["task"]["type"])
"""
)
FAULTS = (
    HEAD
    + """
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("tensorflow").addHandler(handler)


def model_fn(features, labels, mode):
    w = tf1.get_variable("w", initializer=0.0)
    found = features["x"] * w
    if mode == E.ModeKeys.PREDICT:
        return E.EstimatorSpec(mode, predictions=found)
    loss = tf1.reduce_mean(tf1.square(found - labels))
    opt = tf1.train.GradientDescentOptimizer(0.2)
    train = opt.minimize(loss, tf1.train.get_global_step())
    return E.EstimatorSpec(mode, loss=loss, train_op=train)


def data(target, count=1000):
    one = {"x": np.ones(4, np.float32)}, np.full(4, target, np.float32)
    return lambda: tf1.data.Dataset.from_tensors(one).repeat(count)


def serving():
    x = tf1.placeholder(tf.float32, [None])
    return E.export.ServingInputReceiver({"x": x}, {"x": x})


def warnings():
    return len([text for text in said if "made no steps" in text])


E.Estimator(model_fn, "empty").train(data(1.0, 0), steps=5)
print("empty", warnings())
for target, steps in ((0.5, 30), (0.0, 60), (0.9, 90), (2.0, 120)):  # What evaluation wants is 1.
    best = E.BestExporter(serving_input_receiver_fn=serving)  # As a process that is started anew.
    spec = E.EvalSpec(data(1.0), steps=2, exporters=best, throttle_secs=0, start_delay_secs=0)
    train = E.TrainSpec(data(target), max_steps=steps)
    E.train_and_evaluate(E.Estimator(model_fn, "model"), train, spec)
print("warnings", warnings())
folder = "model/export/best_exporter"
read = lambda name: tf1.train.load_variable(os.path.join(folder, name, "variables/variables"), "w")
names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
print("exported", [round(float(read(name)), 2) for name in names])
"""
)


def run_tasks(
    start_program: Callable[..., Any], folder: Path, source: str, jobs: list[str], *words: str
) -> tuple[int, str]:
    """Runs a program as a cluster; returns the exit code and the output."""
    (folder / "program.py").write_text(source, encoding="utf-8")
    launch = ["-m", "experiments.launch", "--chief", "--num_ps=1", *jobs, "--"]
    with (folder / "output").open("wb") as out:
        command = [sys.executable, *launch, "program.py", *words]
        tasks = start_program(command, cwd=folder, stdout=out, stderr=out)
    try:
        code = tasks.wait(150)
    finally:
        tasks.kill()
    return code, (folder / "output").read_text("utf-8")


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize(("kind", "workers"), [("shards", 2), ("same", 1)])
def test_all_shards_are_read(
    start_program: Callable[..., Any], runtimes: list[str], tmp_path: Path, kind: str, workers: int
) -> None:
    """On the modern runtime, whose chief trains on no step; what is no shard stays as it was."""
    if "modern" not in runtimes:
        pytest.skip("no modern runtime")
    jobs = [f"--num_workers={workers}"]
    code, output = run_tasks(start_program, tmp_path, SUM, jobs, "modern", kind)
    assert code == 0, output
    assert f"[chief 0] sum {sum(range(1, 41)):.1f} 40\n" in output, output


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
def test_tensors_that_differ_by_task_are_refused(
    start_program: Callable[..., Any], runtimes: list[str], tmp_path: Path
) -> None:
    if "modern" not in runtimes:
        pytest.skip("no modern runtime")
    jobs = ["--num_workers=1"]
    code, output = run_tasks(start_program, tmp_path, SUM, jobs, "modern", "constant")
    assert code != 0
    words = "input_fn returns other tensors in /job:worker/task:0 than in the chief"
    assert words in output, output


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
def test_the_evaluator_ends_with_a_run_of_no_max_steps(
    start_program: Callable[..., Any], runtime: str, tmp_path: Path
) -> None:
    """Though the next evaluation would be in ten minutes."""
    jobs = ["--num_workers=1", "--evaluator"]
    code, output = run_tasks(start_program, tmp_path, ENDS, jobs, runtime)
    assert code == 0, output
    assert "[evaluator 0] end of evaluator\n" in output, output
    assert json.loads((tmp_path / "model" / "estimator_complete.json").read_text())["run"]
    assert list((tmp_path / "model" / "eval").glob("events.out.tfevents.*"))


def test_faults_of_the_package(run_source: RunProgram, runtime: str, tmp_path: Path) -> None:
    """A resumed run exports what is better than all before; 1.15 skips its first evaluation."""
    lines = run_source(FAULTS, runtime, folder=tmp_path).splitlines()
    assert lines[:2] == ["empty 1", "warnings 1"]
    exported = json.loads(lines[2].partition(" ")[2])
    assert exported in ([0.5, 0.9], []), exported
    if sys.version_info >= (3, 8):  # Those of 1.15 have no later Python.
        assert exported == [0.5, 0.9]
