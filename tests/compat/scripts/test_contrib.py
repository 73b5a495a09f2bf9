"""`tf.contrib`, `tf.layers`, `tf.nn.rnn_cell` and `tf.estimator`, as old scripts use them.

`contrib_habits.py`, with the other `*_habits.py`, is such a script: it runs once, and says of each
habit how it went.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat.scripts.names import contrib_names
from tests.compat.scripts.conftest import HAS_CONTRIB, NEEDED

SCRIPT = Path(__file__).with_name("contrib_habits.py")
OTHERS = ("head", "learn", "optimizer", "package", "sequence", "training")
HABITS = [
    node.name
    for script in (SCRIPT, *(SCRIPT.with_name(f"{name}_habits.py") for name in OTHERS))
    for node in ast.parse(script.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name != "run" and node.name[0] != "_"
]
RESOLVE = """
import sys
from compat.scripts.names import table
from compat.scripts.view import namespace
for name, served in sorted(table.NAMES.items()):
    if served.by and name.startswith(("contrib.", "estimator", "layers", "nn.")):
        try:
            value = namespace.top()
            for part in name.split("."):
                value = getattr(value, part)
        except Exception as error:
            print(name, served.by, repr(error)[:200])
print("resolved")
"""
REMOVED = """
import tensorflow as tf
for name in (
    "opt.ElasticAverageOptimizer", "opt.MultitaskOptimizerWrapper", "eager.gradients_function",
    "estimator.RNNClassifier", "training.stratified_sample",
):
    module, _, last = name.partition(".")
    try:
        getattr(getattr(tf.contrib, module), last)
    except AttributeError as error:
        print(name, str(error).partition("; run the script")[0], sep=": ")
"""
STRATEGY = """
import sys
import numpy as np, tensorflow as tf
def model_fn(features, labels, mode):
    made = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, made)
    train = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
rows = np.ones([20, 2], np.float32)
inputs = tf.estimator.inputs.numpy_input_fn({"x": rows}, rows[:, :1], num_epochs=None, shuffle=True)
strategy = tf.contrib.distribute.ParameterServerStrategy(num_gpus_per_worker=0)
config = tf.estimator.RunConfig(sys.argv[1], train_distribute=strategy)
model = tf.estimator.Estimator(model_fn, config=config)
training = tf.estimator.TrainSpec(lambda: inputs, max_steps=30)
tf.estimator.train_and_evaluate(model, training, tf.estimator.EvalSpec(inputs, steps=1))
print("step", model.get_variable_value("global_step"))
"""

pytestmark = pytest.mark.skipif(
    None in map(importlib.util.find_spec, NEEDED),
    reason="needs the extra `scripts`",
)


def run(*command: str) -> str:
    """Returns what a command of this Python prints."""
    return subprocess.run(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=800,
    ).stdout


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    lines = run("-m", "compat", "run", str(SCRIPT)).splitlines()
    found = [line.split(" ", 2) for line in lines if line.startswith(("PASS ", "FAIL "))]
    return {words[1]: " ".join(words[2:]) for words in found}


@pytest.mark.long
@pytest.mark.parametrize("habit", HABITS)
def test_habit_works_as_in_its_time(habit: str, outcomes: dict[str, str]) -> None:
    if habit == "more_than_contrib_took" and HAS_CONTRIB:
        pytest.skip("TensorFlow's own contrib serves, which refuses it")
    assert outcomes.get(habit, "it did not run").replace("\\n", "\n") == ""


def test_every_name_is_served() -> None:
    assert run("-c", RESOLVE) == "resolved\n"


@pytest.mark.long
@pytest.mark.skipif(HAS_CONTRIB, reason="TensorFlow's own contrib serves them")
def test_removed_name_says_what_to_use() -> None:
    notes = contrib_names.NAMES
    lines = run("-m", "compat", "run", "-c", REMOVED).splitlines()
    assert len(lines) == 5
    for line in lines:
        name = line.partition(":")[0]
        gone = f"tf.contrib.{name} is gone since TensorFlow 2.0"
        assert line == f"{name}: {gone}: {notes[name][1]}"
        assert " use " in line


@pytest.mark.parametrize("name", sorted(contrib_names.NAMES))
def test_name_without_server_says_why(name: str) -> None:
    by, note = contrib_names.NAMES[name]
    assert by or note


@pytest.mark.long
@pytest.mark.cluster
def test_workers_with_a_strategy_of_parameter_servers(tmp_path: Path) -> None:
    script = tmp_path / "by_strategy.py"
    script.write_text(STRATEGY)
    words = ("--cluster=ps=1,worker=2", str(script), str(tmp_path / "model"))
    printed = run("-m", "compat", "run", *words).splitlines()
    assert any(re.fullmatch(r"\[worker \d\] step 3\d", line) for line in printed)
    assert printed[-1] == "all others have ended; stopping ps 0"
