"""Estimators, name by name: on either runtime they do what those of 1.15 do.

`golden_estimators.json` is what `estimator_rows.py` prints on TensorFlow 1.15.5.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster

HERE = Path(__file__).parent
PROGRAM = HERE / "estimator_program.py"
GOLDEN: dict[str, list[float]] = json.loads((HERE / "golden_estimators.json").read_text("utf-8"))
PAGE = (HERE.parents[1] / "docs" / "estimator.md").read_text("utf-8")
REFUSED = {
    "queues": "the input function reads from queues by queue runners",
    "iterators": "the input function makes 2 iterators",
    "three values": "the input function returned 3 values",
}
CANNED = """
import sys
import numpy as np
import compat
from compat import tf

compat.select_runtime(sys.argv[1])
estimator, columns = compat.estimator, tf.feature_column
words = np.array(["red", "green", "blue"] * 100)
word = columns.categorical_column_with_vocabulary_list("word", ["red", "green", "blue"])
found = estimator.DNNClassifier([32], [columns.indicator_column(word)], model_dir="model")
feed = estimator.inputs.numpy_input_fn
found.train(feed({"word": words}, (words == "red") * 1, num_epochs=None, shuffle=True), steps=100)
print(found.evaluate(feed({"word": words}, (words == "red") * 1, shuffle=False))["accuracy"])
"""
MAX_STEPS = 40
MEAN, RATE = 2.5, 0.25  # Of the inputs, which is the gradient of each step; what it is scaled by.

Found = Dict[str, Any]


@pytest.fixture(scope="module")
def in_one_process(run_program: RunProgram, runtime: str) -> Found:
    found: Found = run_program(PROGRAM, runtime=runtime)
    return found


@pytest.mark.parametrize("name", GOLDEN)
def test_numbers_in_one_process(in_one_process: Found, name: str) -> None:
    assert in_one_process[name] == pytest.approx(GOLDEN[name], rel=1e-5)


@pytest.mark.cluster
def test_a_cluster_of_tf_config(start_cluster: StartCluster, runtime: str, tmp_path: Path) -> None:
    settings = {"folder": str(tmp_path / "model"), "max_steps": MAX_STEPS}
    jobs = {"ps": 1, "chief": 1, "worker": 1, "evaluator": 1}
    with start_cluster(PROGRAM, runtime, **jobs) as cluster:
        tasks = {job: cluster.start(job, **settings) for job in jobs}
        reports = {job: task.report for job, task in tasks.items()}
    last = reports["chief"]
    # On the legacy runtime a trainer stops by the step that it read, which the other's update may
    # follow: each of the two may make one update more.
    assert MAX_STEPS <= last["step"] <= MAX_STEPS + (2 if runtime == "legacy" else 0)
    # These may come while the chief saves the weight and the step, one after the other.
    updates = last["weight"] / (RATE * MEAN)
    assert updates == pytest.approx(round(updates))
    assert abs(round(updates) - last["step"]) <= (2 if runtime == "legacy" else 0)
    # The chief may save the other's update after the evaluator has seen that all steps are made.
    assert MAX_STEPS <= reports["evaluator"]["step"] <= last["step"]
    assert runtime == "legacy" or reports["evaluator"] == last
    assert list((tmp_path / "model" / "eval").glob("events.out.tfevents.*"))
    assert len(list((tmp_path / "model").glob("events.out.tfevents.*"))) == 1  # The chief's.


@pytest.mark.once
def test_what_is_refused_takes_a_line(run_program: RunProgram, runtimes: list[str]) -> None:
    found = run_program(PROGRAM, runtime=runtimes[-1], refused=True)
    for name, words in REFUSED.items() if runtimes[-1] == "modern" else ():
        assert words in found.pop(name)
    assert list(found) == ["TF_CONFIG"]
    assert 'RunConfig: If "cluster" is set' in found["TF_CONFIG"]


@pytest.mark.once
def test_the_page_s_program_prints_what_the_page_shows(
    run_source: RunProgram, runtimes: list[str], tmp_path: Path
) -> None:
    """On the legacy runtime of TensorFlow 1.15, and on the modern one of the newest."""
    program, output = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)
    assert run_source(program, runtimes[-1], folder=tmp_path) == output
    assert list((tmp_path / "model" / "eval").glob("events.out.tfevents.*"))


@pytest.mark.long
@pytest.mark.cluster
def test_the_page_s_program_as_a_cluster(
    start_program: Callable[..., Any], runtime: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    jobs = ["--chief", "--num_ps=1", "--num_workers=1"]
    command = [sys.executable, "-m", "experiments.launch", *jobs, "--", "program.py", runtime]
    with (tmp_path / "output").open("wb") as out:
        tasks = start_program(command, cwd=tmp_path, stdout=out, stderr=out)
    try:
        code = tasks.wait(150)
    finally:
        tasks.kill()
    assert code == 0, (tmp_path / "output").read_text("utf-8")
    assert list((tmp_path / "model").glob("model.ckpt-20?.index"))


@pytest.mark.once
def test_a_canned_estimator_with_a_vocabulary(
    run_source: RunProgram, runtimes: list[str], tmp_path: Path
) -> None:
    """Its feature column makes and fills a table outside the graph."""
    assert run_source(CANNED, runtimes[-1], folder=tmp_path) == "1.0\n"


def test_each_row_has_numbers_of_its_time() -> None:
    (names,) = runpy.run_path(str(HERE / "estimator_rows.py"))["SECTIONS"].values()
    assert names == list(GOLDEN)
