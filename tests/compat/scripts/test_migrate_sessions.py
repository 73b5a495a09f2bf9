"""What plain sessions take, and the supervisors of migrated programs as well."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# A queue that the program fills, and one that threads fill.
QUEUES = """\
import numpy as np
import compat.v1 as tf

xs = np.random.RandomState(1).rand(64, 4).astype("float32")
given = tf.placeholder(tf.float32, [None])
rates = tf.FIFOQueue(9, [tf.float32], shapes=[[]])
fill = rates.enqueue_many([given])
rate = rates.dequeue()
queue = tf.FIFOQueue(9, [tf.float32], shapes=[[4]])
tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue_many([xs])]))
x = queue.dequeue_many(16)
weights = tf.Variable(tf.zeros([4, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - tf.reduce_sum(x, 1, keepdims=True)))
train = tf.train.GradientDescentOptimizer(rate).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    for i in range(20):
        sess.run(fill, {given: [0.1, 0.1]})
        _, value = sess.run([train, loss])
        if sess.run(rates.size()) == 5:
            sess.run(rates.dequeue_many(5))
    print("%.2f %d" % (value, sess.run(rates.size())))
    print(sess.run(tf.shape(weights)).tolist())
    coord.request_stop()
    sess.run(queue.close(cancel_pending_enqueues=True))
    coord.join(threads)
"""


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_what_a_call_builds_is_built_before_the_session() -> None:
    """The graph of a supervisor is final, and that of a plain session is not."""
    found = rewritten(QUEUES)
    build = found[found.index("def build") : found.index("with compat.Supervisor")]
    for line in (
        "rates_size = rates.size()",
        "rates_dequeue_many = rates.dequeue_many(5)",
        "shape = tf.shape(weights)",
        "queue_close = queue.close(cancel_pending_enqueues=True)",
    ):
        assert build.count(f"    {line}\n") == 1, found
    assert "compat 1:" not in found


def test_it_trains_on_either_runtime(run_step: Callable[[str, str], Any], runtime: str) -> None:
    ran = run_step(rewritten(QUEUES), runtime)
    assert (ran.code, ran.out.splitlines()[-2:]) == (0, ["0.00 0", "[4, 1]"]), ran.out


# As of 2017: a package of contrib, a train_op of two parts, a supervisor that is told everything.
PARTS = """\
import compat.v1 as tf
from compat.v1.contrib import slim

x = tf.placeholder(tf.float32, [None, 4])
y = tf.placeholder(tf.float32, [None, 1])
with tf.device(None):
    global_step = tf.train.get_or_create_global_step()
    slim.losses.mean_squared_error(slim.fully_connected(x, 1, activation_fn=None), y)
    loss = slim.losses.get_total_loss()
    train_op = tf.train.GradientDescentOptimizer(0.02).minimize(loss, global_step=global_step)
    with tf.control_dependencies([train_op]):
        train_op = tf.train.ExponentialMovingAverage(0.9).apply(tf.trainable_variables())
    for v in tf.trainable_variables():
        tf.summary.histogram(v.op.name, v)
    saver = tf.train.Saver(max_to_keep=2)
    init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
    sv = tf.train.Supervisor(logdir="LOGDIR", init_op=init_op, saver=saver)
with sv.managed_session() as sess:
    for i in range(30):
        _, value = sess.run([train_op, loss], {x: [[1, 2, 3, 4]], y: [[1]]})
    for name in "abc":
        sv.saver.save(sess, "LOGDIR/" + name)
print("%.2f" % value)
"""


def test_what_a_supervisor_is_told_works_on_either_runtime(
    run_step: Callable[[str, str], Any], runtime: str, tmp_path: Path
) -> None:
    found = rewritten(PARTS.replace("LOGDIR", tmp_path.as_posix()))
    assert "compat 1:" not in found
    ran = run_step(found, runtime)
    assert (ran.code, ran.out.splitlines()[-1:]) == (0, ["0.00"]), ran.out
    assert len(list(tmp_path.glob("*.index"))) == 2


def test_local_values_that_a_supervisor_would_not_make_stay_in_its_init_op() -> None:
    saver = "saver=saver)"
    found = rewritten(PARTS.replace(saver, f"local_init_op=tf.no_op(), {saver}"))
    assert "init_op=init_op, local_init_op=" in found
    assert "init_op = tf.group(" in found
    assert "compat 1: init_op" in found


def test_what_is_initialized_twice_is_initialized_once(
    run_step: Callable[[str, str], Any], runtime: str, tmp_path: Path
) -> None:
    text = PARTS.replace("LOGDIR", tmp_path.as_posix())
    text = re.sub(r"init_op = .*", "init_op = tf.initialize_all_variables()", text)
    first = "with sv.managed_session() as sess:\n"
    found = rewritten(text.replace(first, f"{first}    sess.run(init_op)\n"))
    assert "init_op" not in found
    assert run_step(found, runtime).code == 0
    found = rewritten(text.replace(first, f"{first}    for _ in (1, 2): sess.run(init_op)\n"))
    assert "init_op" in found, "it may begin anew"


def test_the_graph_of_a_session_is_what_a_writer_takes(run_step: Any, runtime: str) -> None:
    first = "with sv.managed_session() as sess:\n"
    lines = "    tf.summary.FileWriter('logs', sess.graph).close()\n"
    lines += "    print('GradientDescent' in str(sess.graph.as_graph_def()))\n"
    ran = run_step(rewritten(PARTS.replace(first, first + lines)), runtime)
    assert (ran.code, "\nTrue\n" in "\n" + ran.out) == (0, True), ran.out


def test_sizes_of_a_shape_are_numbers_on_either_runtime(run_step: Any, runtime: str) -> None:
    text = QUEUES.replace("[4, 1]", "[x.get_shape()[1].value, shape[-1].value - 3]")
    text = text.replace("weights = ", "shape = x.shape\nweights = ")
    made = rewritten(text)
    assert "[tf.dimension_value(x.get_shape()[1]), tf.dimension_value(shape[-1]) - 3]" in made
    assert run_step(made, runtime).out.endswith("\n[4, 1]\n")


def test_a_variable_less_something_is_a_tensor_on_either_runtime(
    run_step: Any, runtime: str
) -> None:
    """`x -= 1` of one is refused by variables of steps, which it might be taken to change."""
    text = QUEUES.replace(
        "\nloss = ", "\nrest = tf.Variable([3.0])\nrest -= 1 if xs.any() else 0\nloss = "
    )
    made = rewritten(text.replace("tf.shape(weights)", "tf.multiply(rest, 2)"))
    assert "\n    rest = rest - (1 if xs.any() else 0)\n" in made
    assert run_step(made, runtime).out.endswith("\n[4.0]\n")


# One function trains, another one restores what it trained into a graph of its own.
TWO = """\
import numpy as np
import compat.v1 as tf

SIZE = 4


def model(x):
    return tf.matmul(x, tf.get_variable("w", [SIZE, 1], initializer=tf.zeros_initializer()))


def train():
    x = tf.placeholder(tf.float32, [None, SIZE])
    loss = tf.reduce_mean(tf.square(model(x) - 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(30):
            sess.run(train_op, {x: np.eye(SIZE)})
        saver.save(sess, "LOGDIR/model")


def evaluate():
    \"\"\"Prints what it
    has learnt.\"\"\"
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [None, SIZE])  # Rows.
    found = model(x)
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, tf.train.latest_checkpoint("LOGDIR"))
        print("%.4f" % sess.run(found, {x: np.eye(SIZE)}).sum())


train()
evaluate()
"""


def test_a_function_with_a_session_of_its_own_that_trains_nothing_stays(
    run_step: Any, tmp_path: Path
) -> None:
    text = TWO.replace("LOGDIR", tmp_path.as_posix())
    body = text[text.index('    """Prints') : text.index("\n\ntrain()")]
    made = rewriting.migrate("old.py", text)
    assert body in made.text and len(made.remarks) == 1
    number, why = made.remarks[0]
    assert made.text.split("\n")[number - 2] == "def evaluate():"
    assert why.startswith("evaluate has a graph and a session of its own and stays as it was")
    ran = run_step(made.text, "legacy")
    assert (ran.code, ran.out.splitlines()[-1:]) == (0, ["3.1414"]), ran
    left = writing.migrate("old.py", text).text
    assert "".join(f"# {line}".rstrip() + "\n" for line in body.split("\n")[:-1]) in left
    assert "as_it_was" not in made.text + left


def test_a_function_that_runs_what_it_is_given_is_no_such_one() -> None:
    text = TWO.replace("evaluate():", "evaluate(found):").replace("    found = model(x)\n", "")
    with pytest.raises(UserError, match="a placeholder is not assigned to a name in its block"):
        rewritten(text)


BETWEEN = """\
import numpy as np
import compat.v1 as tf

with tf.device(None):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.name_scope("first"):
        weights = tf.Variable(tf.zeros([4, 1]))
        init = tf.initialize_all_variables()
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    init = tf.global_variables_initializer()
    sv = tf.train.Supervisor(init_op=init)
session = sv.prepare_or_wait_for_session()
session.run([train, loss], feed_dict={x: np.ones([2, 4])})
"""


def test_initializers_of_one_name_are_left_out() -> None:
    migrated = rewriting.migrate("old.py", BETWEEN)
    assert "initiali" not in migrated.text and not migrated.remarks
    other = rewriting.migrate("old.py", BETWEEN.replace("initialize_all_variables()", "no_op()"))
    assert "init = tf.no_op()" in other.text


def test_what_feeds_stands_behind_the_graph_that_a_writer_is_given() -> None:
    text = BETWEEN[: BETWEEN.index("    init = tf.global")].replace(
        "with tf.device(None)", "if True"
    )
    text += """
    def feed():
        return {x: np.ones([2, 4])}

    session = tf.InteractiveSession()
    writer = tf.summary.FileWriter("logs", session.graph)
    tf.global_variables_initializer().run()
    session.run([train, loss], feed_dict=feed())
"""
    found = rewriting.migrate("old.py", text).text
    build = found[found.index("def build(x):") : found.index("compat.step(")]
    assert "def feed" not in build and "FileWriter" not in build
    assert found.index("compat.step(") < found.index("def feed():") < found.index("FileWriter(")
