"""Names and arguments of TensorFlow before 1.0, each in one process with many others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.scripts.names import table
from tests.compat.scripts.conftest import NEEDED, PACKAGES

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

OLD = """
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as v1
from tensorflow.python.ops import rnn_cell
from tensorflow.python.client import timeline
from tensorflow.examples.tutorials.mnist import mnist as tutorial

one, two = tf.constant([1., 2.]), tf.constant([3., 4.])
logits, targets = tf.constant([[1., 2., 0.5]]), tf.constant([[0., 0., 1.]])
weights, biases = tf.ones([5, 2]), tf.zeros([5])
inputs, labels = tf.constant([[1., 2.]]), tf.constant([[3]], tf.int64)
sparse = tf.SparseTensor(indices=[[0, 1]], values=[7.], shape=[1, 2])
assert isinstance(sparse, tf.SparseTensor)
assert isinstance(tf.Session(), tf.Session)
assert (v1, v1.Session, v1.mul) == (tf.compat.v1, tf.Session, tf.mul)
tf.scalar_summary("the cost", tf.reduce_sum(one))
tf.histogram_summary("weights", weights)
tf.image_summary("picture", tf.zeros([1, 2, 2, 1]))

def nce(*args, **kwargs):
    sampled = (tf.constant([1, 2], tf.int64), tf.ones([1, 1]), tf.ones([2]))
    return tf.nn.nce_loss(weights, biases, *args, num_sampled=2, num_classes=5,
                          sampled_values=sampled, **kwargs)

values = {
    "mul": tf.mul(one, two), "sub": tf.sub(one, two), "neg": tf.neg(one),
    "inv": tf.inv(two), "pack": tf.pack([one, two]), "unpack": tf.unpack(tf.pack([one, two]))[1],
    "concat of 0.x": tf.concat(0, [one, two]), "concat of 1.x": tf.concat([one, two], 0),
    "concat by name": tf.concat(concat_dim=0, values=[one, two]),
    "split of 0.x": tf.split(0, 2, one)[1], "split of 1.x": tf.split(one, 2, 0)[1],
    "split by name": tf.split(split_dim=0, num_split=2, value=one)[1],
    "split_v": tf.split_v(one, [1, 1], 0)[1],
    "split_v by name": tf.split_v(value=one, size_splits=[1, 1], split_dim=0)[1],
    "concat_v2": tf.concat_v2([one], 0),
    "select": tf.select([True, False], one, two),
    "batch_matmul": tf.batch_matmul(tf.ones([1, 1, 2]), tf.ones([1, 1, 2]), adj_y=True),
    "complex_abs": tf.complex_abs(tf.constant(3 + 4j)),
    "reduction_indices": tf.reduce_sum([[1., 2.]], reduction_indices=[1], keep_dims=True),
    "softmax": tf.nn.softmax_cross_entropy_with_logits(logits, targets),
    "softmax by name": tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits),
    "sigmoid": tf.nn.sigmoid_cross_entropy_with_logits(logits, targets),
    "sigmoid by name": tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, targets=targets),
    "sparse": tf.nn.sparse_softmax_cross_entropy_with_logits(logits, [2]),
    "nce of 0.x": nce(inputs, labels), "nce of 1.x": nce(labels, inputs),
    "nce by name": nce(inputs=inputs, labels=labels),
    "reverse of 0.x": tf.reverse([[1, 2], [3, 4]], [False, True]),
    "reverse of 1.x": tf.reverse([[1, 2], [3, 4]], [1]),
    "resize_images": tf.shape(tf.image.resize_images(tf.zeros([1, 2, 2, 1]), 4, 6)),
    "sparse shape": sparse.dense_shape,
    "zeros": tf.get_variable("zeros", initializer=tf.zeros_initializer([2])),
    "zeros by class": tf.get_variable("ones", [2], initializer=tf.zeros_initializer) + 1,
    "tutorial": tf.shape(tutorial.inference(tf.zeros([3, 784]), 4, 4)),
}
with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    for name, value in sorted(session.run(values).items()):
        print("%s: %s" % (name, " ".join("%.4g" % number for number in np.ravel(value))))
    merged = session.run(tf.merge_all_summaries())
summary = tf.Summary.FromString(merged)
print("tags:", sorted(value.tag for value in summary.value))
print("version:", tf.__version__, tf.VERSION)
with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    tf.train.Saver().save(session, "logs/model")
    try:
        tf.train.Saver({"w": tf.Variable(1.0)}).restore(session, "logs/model")
    except tf.errors.NotFoundError as error:
        print(str(error).split(";")[0])
"""

SEEN = """\
batch_matmul: 2
complex_abs: 5
concat by name: 1 2 3 4
concat of 0.x: 1 2 3 4
concat of 1.x: 1 2 3 4
concat_v2: 1 2
inv: 0.3333 0.25
mul: 3 8
nce by name: 6.146
nce of 0.x: 6.146
nce of 1.x: 6.146
neg: -1 -2
pack: 1 2 3 4
reduction_indices: 3
resize_images: 1 4 6 1
reverse of 0.x: 2 1 4 3
reverse of 1.x: 2 1 4 3
select: 1 4
sigmoid: 1.313 2.127 0.4741
sigmoid by name: 1.313 2.127 0.4741
softmax: 1.964
softmax by name: 1.964
sparse: 1.964
sparse shape: 1 2
split by name: 2
split of 0.x: 2
split of 1.x: 2
split_v: 2
split_v by name: 2
sub: -2 -2
tutorial: 3 10
unpack: 3 4
zeros: 0 0
zeros by class: 1 1
tags: ['picture/image/0', 'the cost', 'weights']
version: 0.12.1 0.12.1
checkpoint logs/model is of another model or optimizer: w is missing
"""


def test_names_and_arguments_before_1_0(run_script: RunScript) -> None:
    ran = run_script(OLD)
    assert ran.code == 0, ran.err
    assert ran.out == SEEN


@pytest.mark.once
def test_what_neither_types_nor_shapes_tell_is_asked_for(run_script: RunScript) -> None:
    call = """
        import tensorflow as tf
        same = tf.ones([2, 2])
        loss = tf.nn.sampled_softmax_loss(tf.ones([5, 2]), tf.zeros([5]), same, same, 2, 5, 2)
        print(loss.shape)
    """
    ran = run_script(call)
    assert ran.code == 2
    assert ran.err.startswith("error: script.py:4: tf.nn.sampled_softmax_loss took (")
    assert "--era=0.x or --era=1.x" in ran.err
    assert ran.err.count("\n") == 1
    assert run_script(call, options=("--era=1.x",)).out == "(2,)\n"


@pytest.mark.once
def test_a_package_that_is_missing_is_named(run_script: RunScript, tmp_path: Path) -> None:
    without = f"import sys; sys.modules.update(dict.fromkeys({list(NEEDED)}))"
    (tmp_path / "sitecustomize.py").write_text(without)
    ran = run_script(
        f"""
        import tensorflow as tf
        for use in ({" ".join(f"lambda: tf.{name}," for name in NEEDED.values())}):
            try:
                use()
            except AttributeError as error:
                print(error)
        tf.estimator.Estimator
        """,
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{PACKAGES}"},
    )
    line = "tf.{} is served by the package {}, which is not installed; pip install '{}'"
    said = {
        package: line.format(name.rpartition(".")[0], package, "compat-experiments[scripts]")
        for package, name in NEEDED.items()
    }
    assert (ran.code, ran.out.splitlines()) == (2, list(said.values())), ran.err
    assert ran.err.splitlines()[-1] == f"error: script.py:8: {said['tensorflow_estimator']}"


@pytest.mark.once
@pytest.mark.skipif("tf_keras" not in NEEDED, reason="before 2.16 TensorFlow has Keras 2")
def test_a_package_of_an_older_release_counts_as_missing(
    run_script: RunScript, tmp_path: Path
) -> None:
    older = tmp_path / "tf_keras-2.15.0.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: tf-keras\nVersion: 2.15.0\n")
    ran = run_script(
        "import tensorflow as tf\ntf.layers.dense",
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{PACKAGES}"},
    )
    assert (ran.code, ran.err) == (
        2,
        "error: script.py:2: tf.layers is served by the package tf_keras, which is not installed; "
        "pip install 'compat-experiments[scripts]'\n",
    )


@pytest.mark.once
def test_python_2_fetches_text_and_tensorflow_still_understands_it(run_script: RunScript) -> None:
    ran = run_script(
        """
        import numpy as np
        import tensorflow as tf
        weight = tf.Variable(1.0, name="weight")
        print tf.placeholder(tf.float32, [None, 10 / 4.0 * 2]).get_shape()[1] / 2
        print tf.Summary.Value(tag="loss", simple_value=np.array([1.5])).simple_value
        print tf.Session().run(tf.constant("text")) + " " + u"more".encode("ascii").decode("ascii")
        print tf.Session().run(tf.constant("text")).decode("utf-8")
        manager = tf.train.SessionManager(
            ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=1)
        try:
            manager.wait_for_session("", max_wait_secs=1)  # Nobody initialises the variable.
        except tf.errors.DeadlineExceededError:
            print "waited"
        """
    )
    assert (ran.code, ran.out) == (0, "2\n1.5\ntext more\ntext\nwaited\n"), ran.err


def test_what_cannot_be_served_stops_with_its_line(run_script: RunScript) -> None:
    ran = run_script(
        """
        import tensorflow as tf
        try:
            tf.contrib.no_such_thing
        except AttributeError:
            print("a script may ask")
        print(hasattr(tf.contrib.learn, "TensorFlowDNNClassifier"))
        tf.contrib.learn.TensorFlowDNNClassifier(hidden_units=[10], n_classes=2)
        """
    )
    assert (ran.code, ran.out) == (2, "a script may ask\nFalse\n")
    assert ran.err.startswith(
        "error: script.py:8: tf.contrib.learn.TensorFlowDNNClassifier is gone since TensorFlow "
    )
    assert ran.err.count("\n") == 1


@pytest.mark.once
def test_a_library_that_uses_tensorflow_sees_the_real_one(run_script: RunScript) -> None:
    ran = run_script(
        """
        import sys
        import tensorflow as tf
        print(hasattr(tf, "mul"), hasattr(sys.modules["tensorflow"], "mul"))
        from tensorflow import *
        print(mul is tf.mul)
        """
    )
    assert ran.code == 0, ran.err
    assert ran.out == "True False\nTrue\n"


def test_a_graphs_seed_gives_each_operation_the_seed_it_had(run_script: RunScript) -> None:
    ran = run_script(
        """
        import tensorflow as tf
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32)
        tf.random_normal([2])
        tf.random_uniform([2])
        for operation in tf.get_default_graph().get_operations():
            if operation.type.startswith("Random"):
                print(operation.get_attr("seed"), operation.get_attr("seed2"))
        """
    )
    # As on TensorFlow 1.15: how many operations the graph had.
    assert ran.out.splitlines()[0] == "1 4"
    assert len(ran.out.splitlines()) == 2


@pytest.mark.parametrize("name", sorted(table.NAMES))
def test_the_table_is_well_formed(name: str) -> None:
    served = table.NAMES[name]
    assert served.by or served.note, "say why nothing serves it"
    if served.by:
        assert ":" in served.by or served.by.startswith("tf.")
