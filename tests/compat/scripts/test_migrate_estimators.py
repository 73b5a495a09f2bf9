"""`python -m compat migrate --to=compat` of scripts whose models `tf.estimator` trains."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from compat.scripts.commands.migrate import main
from tests.compat.scripts.conftest import HAS_CONTRIB, NEEDED, run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
MODEL = """
import tensorflow as tf


def model_fn(features, labels, mode, params):
    weights = tf.get_variable("weights", [int(features["x"].get_shape()[1].value), 3])
    hidden = tf.matmul(tf.nn.dropout(features["x"], 0.5), weights)
    layers = tf.keras.layers
    network = tf.keras.Sequential(
        [layers.Dense(4, input_shape=(3,)), layers.BatchNormalization(), layers.Dense(1)]
    )
    loss = tf.losses.mean_squared_error(labels, network(hidden, training=True)[:, 0])
    _, mean = tf.metrics.mean(loss)
    tf.identity(mean, name="mean_loss")
    optimizer = tf.train.AdamOptimizer(params["rate"])
    with tf.control_dependencies(network.get_updates_for(hidden)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
SCRIPT = """
import numpy as np
import tensorflow as tf
import model

xs = np.random.RandomState(0).rand(400, 3).astype(np.float32)
read = tf.estimator.inputs.numpy_input_fn({"x": xs}, xs.sum(1), batch_size=8, shuffle=True)
hook = tf.train.LoggingTensorHook(["mean_loss"], every_n_iter=3)
estimator = tf.estimator.Estimator(model.model_fn, "logs", params={"rate": 0.1})
estimator.train(read, steps=7, hooks=[hook])
"""


def write(folder: Path, script: str = SCRIPT, model: str = MODEL) -> Path:
    (folder / "train.py").write_text(script, encoding="utf-8")
    (folder / "model.py").write_text(model, encoding="utf-8")
    return folder / "train.py"


@pytest.mark.slow
def test_it_trains_as_before_on_either_runtime(
    tmp_path: Path,
    runtime: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With shuffled batches, dropout, a model of Keras, and a streaming metric that a hook logs."""
    if None in map(importlib.util.find_spec, NEEDED):
        pytest.skip("needs the extra `scripts`")
    from compat.scripts.commands.prove import main as prove

    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    assert main(["--to=compat", "train.py"]) == 0
    capsys.readouterr()
    assert prove([f"--b=train_compat.py --runtime={runtime}", "--steps=7", "train.py"]) == 0
    said = capsys.readouterr().out
    assert "equal: 10 losses of the first 7 training calls" in said  # Those of the hook as well.
    assert "not controlled" not in said


def test_names_of_estimators_are_those_of_compat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--to=compat", str(write(tmp_path))]) == 0
    text = (tmp_path / "train_compat.py").read_text(encoding="utf-8")
    assert "compat.select_runtime(compat.runtime_from(sys.argv))" in text
    assert "import model_v1 as model" in text
    assert "estimator = compat.estimator.Estimator(model.model_fn" in text
    assert "tf.estimator" not in text
    model = (tmp_path / "model_v1.py").read_text(encoding="utf-8")
    assert "import compat\nimport compat.v1 as tf\n" in model
    assert "select_runtime" not in model
    assert "return compat.estimator.EstimatorSpec(mode" in model


def test_modules_of_the_package_of_a_script_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `python -m trainer.train`, which imports `trainer.model`."""
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    script = write(package, SCRIPT.replace("import model", "import trainer.model as model"))
    monkeypatch.chdir(tmp_path)
    assert main(["--to=compat", str(script)]) == 0
    text = (package / "train_compat.py").read_text(encoding="utf-8")
    assert "import trainer.model_v1 as model" in text
    assert (package / "model_v1.py").exists()


def test_a_module_whose_new_name_another_one_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model_v1.py").write_text("import tensorflow as tf\nA = tf.int32\n", "utf-8")
    script = write(tmp_path, SCRIPT.replace("import model", "import model\nimport model_v1"))
    assert main(["--to=compat", str(script)]) == 0
    text = (tmp_path / "train_compat.py").read_text(encoding="utf-8")
    assert "import model_compat_v1 as model" in text
    assert "import model_v1_compat_v1 as model_v1" in text


LEARN = """
import numpy as np
import tensorflow as tf
from tensorflow.contrib import learn
from tensorflow.contrib.learn.python.learn import learn_runner

xs = np.random.RandomState(0).rand(64, 4).astype(np.float32)


def read():
    data = tf.data.Dataset.from_tensor_slices(xs).repeat().batch(8)
    x = data.make_one_shot_iterator().get_next()
    return {"x": x}, tf.reduce_sum(x, 1, keep_dims=True)


def experiment(folder):
    columns = [tf.contrib.layers.real_valued_column("x", 4)]
    estimator = learn.LinearRegressor(columns, model_dir=folder)
    return learn.Experiment(estimator, read, read, train_steps=60, eval_steps=5)


print(learn_runner.run(experiment, "logs"))
"""


@pytest.mark.slow
def test_an_experiment_of_contrib_in_a_cluster(
    tmp_path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its tasks end, the parameter server as well."""
    if HAS_CONTRIB or None in map(importlib.util.find_spec, NEEDED):
        pytest.skip("TensorFlow has a tf.contrib.learn of its own, or the extra is missing")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.py").write_text(LEARN, encoding="utf-8")
    assert main(["--to=compat", "task.py"]) == 0
    sizes = ("--chief", "--num_ps=1", "--num_workers=1")
    command = ("task_compat.py", f"--runtime={runtime}")
    ran = run_python("-m", "experiments.launch", *sizes, "--", *command, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    steps = re.findall(r"'global_step': (\d+)", ran.stdout)
    assert len(steps) == 1 and 60 <= int(steps[0]) <= 61, ran.stdout
