"""`python -m compat prove` of programs that train nothing, or on the modern runtime."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat._tensorflow import tf, tf1
from compat.scripts.commands.migrate import main as migrate
from compat.scripts.commands.prove import main
from compat.scripts.proving import comparison, runs
from compat.scripts.proving.recorder import arrays, graphs, sessions
from compat.scripts.proving.sides import Side

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
PAGE = Path(__file__).resolve().parents[3] / "docs" / "migrate-steps.md"
OLD = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
NUMBERS = """
import tensorflow as tf
a = tf.constant([[1.0, 2.0], [3.0, 4.0]], name="a")
with tf.Session() as session:
    print(session.run([tf.matmul(a, a), tf.reduce_sum(a), tf.constant("text")]))
"""

FED = """
import numpy as np
import tensorflow as tf
xs = np.random.RandomState(1).rand(40, 2).astype(np.float64)
x, y = tf.placeholder(tf.float64, [8, 2]), tf.placeholder(tf.float64, [8])
w = tf.get_variable("w", [2, 1])
output = tf.matmul(tf.cast(x, tf.float32), w)[:, 0]
loss = tf.reduce_mean(tf.square(output - tf.cast(y, tf.float32)))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for i in range(5):
        batch = xs[np.random.permutation(40)[:8]]
        session.run([train, loss], {x: batch, y: batch.sum(1)})
"""
READ = """
import numpy as np
import tensorflow as tf
xs = np.random.RandomState(1).rand(40, 2).astype(np.float32)
rows = tf.train.slice_input_producer([np.arange(40), xs, xs.sum(1)])
number, x, y = tf.train.batch(rows, 8)  # The number is not used.
w = tf.get_variable("w", [2, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w)[:, 0] - y))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.start_queue_runners(session)
    for i in range(5):
        session.run([train, loss])
"""


@pytest.mark.slow
def test_of_a_program_that_trains_nothing_all_numbers_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(NUMBERS, encoding="utf-8")
    other.write_text(NUMBERS.replace("4.0", "5.0"), encoding="utf-8")
    assert main([str(one)]) == 0
    said = capsys.readouterr().out
    assert "it trains nothing: all calls of sessions that fetch numbers are compared" in said
    assert "equal: 2 values of 1 calls; largest relative difference 0" in said
    assert main([f"--b={other}", str(one)]) == 1
    assert "differ: value MatMul:0 of call 1: 22 and 31 at [1, 1]" in capsys.readouterr().out


@pytest.mark.slow
def test_batches_that_one_feeds_and_the_other_reads_from_queues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fed, read = tmp_path / "fed.py", tmp_path / "read.py"
    fed.write_text(FED, encoding="utf-8")
    read.write_text(READ, encoding="utf-8")
    assert main([f"--b={read}", str(fed)]) == 0
    said = capsys.readouterr().out
    assert "equal: 5 losses of 5 training calls" in said
    assert "not controlled" not in said


def test_numbers_of_a_program_that_trains_nothing(tmp_path: Path) -> None:
    def run(name: str, **fetched: object) -> runs.Run:
        folder = tmp_path / name
        folder.mkdir()
        arrays.save(
            str(folder / "fetched-0001.npz"), {k: np.asarray(v) for k, v in fetched.items()}
        )
        record = {"call": 1, "raised": "", "fetched": list(fetched)}
        side = Side(name, sys.executable, "x.py", "plain", "x.py")
        return runs.Run(side, str(folder), [record], ended=0)

    first = run("A", x=[1.0, 2.0])
    assert first.trains_nothing
    same = comparison.compare(first, run("same", y=[1.0, 2.0]), 1e-4)
    assert (same.verdict, len(same.losses)) == ("", 1)
    for name, fetched in (("more", {"x": [1.0, 2.0], "y": 1}), ("longer", {"x": [1.0, 2.0, 3.0]})):
        assert comparison.compare(first, run(name, **fetched), 1e-4).verdict
    found = comparison.compare(first, run("other", x=[1.0, 3.0]), 1e-4)
    assert found.verdict.startswith("value x of call 1: 2 and 3 at [1]")


def test_what_has_no_value_is_not_fetched() -> None:
    """TensorFlow fetches nothing that is fed, nor the branch of a condition that is not taken."""
    calls: list[Any] = []

    def run(*args: Any) -> Any:
        calls.append(args)
        return private_run(*args)

    with tf1.Graph().as_default(), tf1.Session() as session:
        private_run = tf1.Session._do_run
        x = tf1.random_uniform([2])
        off, on = tf.raw_ops.Switch(data=x * 2.0, pred=x[0] > 0.0)
        either = tf.raw_ops.Merge(inputs=[off * 3.0, on * 4.0]).output
        call = sessions.Call(session, run, [either], [], {})
        floats = [tensor.name for tensor in graphs.fetchable_floats(call.operations())]
        found = call.values(floats, {x.name: np.array([1.0, 2.0], np.float32)})
    assert not {off.name, on.name} & set(floats)
    assert [found[x.name].tolist(), found[either.name].tolist()] == [[1.0, 2.0], [8.0, 16.0]]
    assert (sorted(found), len(calls)) == (sorted(floats), 1)


def test_whole_numbers_are_trained_where_nothing_else_is() -> None:
    """A global step is no part of a model; a program may add up vectors of whole numbers alone."""
    with tf1.Graph().as_default() as graph:
        total = tf1.get_variable("total", [2], tf.int32)
        adding = total.assign_add(tf.ones([2], tf.int32)).op
        assert graphs.kind(graph, graphs.closure([adding])) == "trains"
        assert graphs.trainable(graph) == ["total"]
        tf1.get_variable("weights", [2])
        assert graphs.kind(graph, graphs.closure([adding])) == ""
        assert graphs.trainable(graph) == ["weights"]


def test_variables_of_a_strategy_are_those_of_its_replicas() -> None:
    """Its own variable adds an operation when it is asked for its initializer."""
    with tf1.Graph().as_default() as graph:
        with tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]).scope():
            tf1.get_variable("w", [2])
        graph.finalize()
        assert graphs.trainable(graph) == ["w", "w/replica_1"]
        assert sorted(graphs.variables(graph)) == ["w", "w/replica_1"]


@pytest.mark.slow
def test_an_old_script_is_proven_on_the_modern_runtime(
    tmp_path: Path, runtimes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if "modern" not in runtimes:
        pytest.skip("this TensorFlow has no modern runtime")
    counts = 'tf.Variable(0, name="counts")  # A whole number, which no optimizer trains.'
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text(OLD.replace("# The model.", counts), encoding="utf-8")
    assert migrate(["--to=compat", f"--output={new}", str(old)]) == 0
    for side in (f"--b={new} --runtime=modern", "--b=run --runtime=modern"):
        capsys.readouterr()
        assert main([side, "--steps=5", str(old)]) == 0
        said = capsys.readouterr().out
        assert "equal: 5 losses of the first 5 training calls" in said
    assert f"compat run --runtime=modern {old}, TensorFlow" in said
    new.write_text(new.read_text(encoding="utf-8").replace("0.02", "0.03"), encoding="utf-8")
    assert main([f"--b={new} --runtime=modern", "--steps=5", str(old)]) == 1
    assert "differ: loss Mean:0 of training call 2" in capsys.readouterr().out


@pytest.mark.slow
def test_script_whose_hosts_are_elsewhere_is_proven_as_one_worker(
    tmp_path: Path, runtimes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No server is started, so no other machine has to be allowed."""
    (tmp_path / "old.py").write_text(OLD.replace("localhost", "192.0.2.1"), encoding="utf-8")
    sides = ["migrated", "run", *(["run --runtime=modern"] if "modern" in runtimes else [])]
    for side in sides:
        assert main([f"--b={side}", "--steps=5", str(tmp_path / "old.py")]) == 0
        said = capsys.readouterr().out
        assert "cluster: one worker, in one process" in said
        assert "equal: 5 losses of the first 5 training calls" in said


def test_inputs_that_tensorflow_has_numbered_are_fed_in_their_order() -> None:
    """A step does not name its placeholders: what a script calls Placeholder may be its second."""
    fed = {"input:0": np.ones(2), "Placeholder:0": np.zeros(3)}
    found, left = arrays.paired([*fed], ["Placeholder:0", "Placeholder_1:0"], fed)
    assert ([a.size for a in found.values()], left) == ([2, 3], [])
    assert [*found] == ["Placeholder:0", "Placeholder_1:0"]


@pytest.mark.slow
def test_a_call_trains_where_its_program_has_a_step_that_counts_nothing(
    tmp_path: Path, runtimes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if "modern" not in runtimes:
        pytest.skip("this TensorFlow has no modern runtime")
    counted = "\nstep = tf.get_variable('global_step', [], initializer=tf.zeros_initializer())\n"
    text = FED.replace("\nw = ", f"{counted}w = ").replace("[train, loss]", "train")
    (tmp_path / "old.py").write_text(text, encoding="utf-8")
    assert (
        migrate(["--to=compat", f"--output={tmp_path / 'new.py'}", str(tmp_path / "old.py")]) == 0
    )
    assert main([f"--b={tmp_path / 'new.py'} --runtime=modern", str(tmp_path / "old.py")]) == 0
    assert "equal: 5 losses of 5 training calls" in capsys.readouterr().out
