"""`python -m compat migrate`: blocks that build more than a graph, or end before the session."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# As of 2017: the session is behind the condition, data, sizes and hooks are in the block.
INSIDE = """\
import numpy as np
import compat.v1 as tf

tf.app.flags.DEFINE_string("job_name", "worker", "")
FLAGS = tf.app.flags.FLAGS

def main(_):
    if FLAGS.job_name == "ps":
        print("no server here")
    elif FLAGS.job_name == "worker":
        with tf.device("/cpu:0"):
            rows = np.ones([16, 4])
            # Columns.
            width = len(rows[0])
            x = tf.placeholder(dtype=tf.float32, shape=[None, width])
            keep = tf.placeholder(dtype=tf.float32)
            weights = tf.Variable(tf.zeros([width, 1]))
            hidden = tf.matmul(x, weights) * keep
            loss = tf.reduce_mean(tf.square(hidden - tf.reduce_sum(x, 1, keepdims=True)))
            global_step = tf.Variable(0, name="global_step", trainable=False)
            hooks = [tf.train.StopAtStepHook(last_step=20)]
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
            init = tf.global_variables_initializer()
    SESSION
            _, value = sess.run([train, loss], {x: rows, keep: 1.0})
        print("loss %.2f" % value)

tf.app.run()
"""
MONITORED = INSIDE.replace(
    "SESSION",
    "with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:\n"
    "        while not sess.should_stop():",
)
SUPERVISED = INSIDE.replace(
    "SESSION",
    "sv = tf.train.Supervisor(init_op=init, global_step=global_step)\n"
    "    with sv.managed_session() as sess:\n"
    "        sess.run(init)\n"
    "        for i in range(20):",
)


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_what_shapes_need_and_hooks_are_made_in_front() -> None:
    found = rewritten(MONITORED)
    front, _, _ = found.partition("def build(x, keep):")
    assert (
        "        rows = np.ones([16, 4])\n        # Columns.\n        width = len(rows[0])\n"
        in front
    )
    assert "        hooks = [compat.StopAtStepHook(last_step=20)]\n" in front
    assert "compat 1:" not in found
    assert "tf.TensorSpec([None, width], tf.float32)" in found


def test_an_initializer_that_is_run_stays_unless_it_repeats_the_supervisor() -> None:
    initializer = "init = tf.global_variables_initializer()"
    assert initializer not in rewritten(SUPERVISED)
    text = SUPERVISED.replace("sess.run(init)", "for _ in (1, 2): sess.run(init)")
    assert initializer in rewritten(text)


@pytest.mark.parametrize("text", [MONITORED, SUPERVISED])
def test_it_trains(run_step: Callable[[str, str], Any], runtime: str, text: str) -> None:
    ran = run_step(rewritten(text), runtime)
    assert (ran.code, ran.out.splitlines()[-1:]) == (0, ["loss 0.00"]), ran.out


def test_it_becomes_an_experiment() -> None:
    found = writing.migrate("old.py", MONITORED).text
    data = found[found.index("    def data") : found.index("    def loss")]
    assert "        rows = np.ones([16, 4])\n" in data
    assert '"x": np.asarray(rows, "float32")[None],\n' in data
    assert "tf.constant(1.0, tf.float32)" in found
    assert "max_steps: int | None = 20\n" in found


def test_the_call_that_feeds_is_the_one_that_trains() -> None:
    """That by which synchronous replicas begin depends on the update as well."""
    made = "opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)"
    text = SUPERVISED.replace(
        "train = tf.train.GradientDescentOptimizer(0.1)", f"{made}; train = opt"
    )
    text = text.replace("; train", "\n            train")
    text = text.replace("sess.run(init)", "sess.run(tokens)")
    text = text.replace("init = tf.g", "tokens = opt.get_init_tokens_op()\n            init = tf.g")
    assert '"x": np.asarray(rows, "float32")[None],\n' in writing.migrate("old.py", text).text


# Blocks side by side, of which the first one has a placeholder; they are the same, or not.
BESIDE = """\
import compat.v1 as tf

with tf.device("/cpu:0"):
    x = tf.placeholder(tf.float32, [None])

with tf.device("/cpu:0"):  # The model.
    weight = tf.Variable(1.0)
OTHER
with tf.device("/cpu:0"):
    loss = tf.reduce_sum(tf.square(scale * weight * x - 1.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(3):
        sess.run(train, {x: [1.0, 0.5]})
    print("%.4f" % sess.run(loss, {x: [1.0]}))
"""


@pytest.mark.parametrize(
    ("other", "block"),
    [
        ("    scale = tf.constant(0.5)", "/cpu:0"),
        ("\nscale = tf.constant(0.5)\n", None),
        ("with tf.device(None):\n    scale = tf.constant(0.5)", None),
    ],
)
def test_blocks_side_by_side_are_one_graph(
    run_step: Callable[[str, str], Any], runtime: str, other: str, block: str | None
) -> None:
    text = BESIDE.replace("OTHER", other)
    new = rewritten(text)
    assert new.count("def build(x):") == 1 and f"with compat.device({block!r})" in new.replace(
        '"', "'"
    )
    outs = [run_step(text, "legacy").out, run_step(new, runtime).out]
    assert outs[0].split()[-1:] == outs[1].split()[-1:], outs


# As of DOWNPOUR: the first block trains a worker's own variables, and counts these updates.
TWICE = """\
import compat.v1 as tf

with tf.device("/cpu:0"):
    own, own_step = tf.Variable(1.0), tf.Variable(0, trainable=False)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(own), own_step)

with tf.device(None):
    weight, global_step = tf.Variable(3.0), tf.Variable(0, trainable=False)
    with tf.control_dependencies([update]):
        loss = tf.square(weight - own)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(2):
        sess.run(train)
    weight, own_step, global_step = sess.run([weight, own_step, global_step])
    print("%.3f %d %d" % (weight, own_step + 10, global_step))
"""


def test_blocks_that_both_train_are_one_graph(
    run_step: Callable[[str, str], Any], runtime: str
) -> None:
    outs = [run_step(TWICE, "legacy").out, run_step(rewritten(TWICE), runtime).out]
    assert [out.split()[-2:] for out in outs] == [["12", "2"]] * 2, outs


# A class that trains, and what does not run it beside.
MODEL = """\
import compat.v1 as tf

class Model(Base):
    def train(self):
        return tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(tf.Variable(1.0)))

"""
RUN = "    with tf.Session() as sess:\n        sess.run(tf.global_variables_initializer())\n"
CALLED = """\
import compat.v1 as tf

def build():
    with tf.device("/cpu:0"):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(tf.Variable(1.0)))
    with tf.Session() as sess:
        sess.run(train)

with tf.device("/cpu:0"):
    scale = tf.constant(1.0)
    build()
"""
SAID = {
    "Model builds what is trained, and fit makes the session; make it": f"{MODEL}def fit():\n{RUN}",
    "Model builds what is trained, and no session is made here; migrate the": MODEL,
    "its block calls build, which builds what is trained and runs it; build": CALLED,
}


@pytest.mark.parametrize("why", SAID)
def test_it_says_what_to_bring_together(why: str) -> None:
    with pytest.raises(UserError, match=why):
        rewritten(SAID[why])


# A graph by its name, in the block and where the session is opened.
GRAPH = """\
import compat.v1 as tf

graph = tf.Graph()
with tf.device("/cpu:0"):
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 4])
        loss = tf.reduce_sum(tf.square(x * tf.Variable(1.0)))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        init = tf.initialize_all_variables()

def fit():
    with graph.as_default():
        with tf.Session(graph=graph) as sess:
            sess.run(init)
            for i in range(20):
                sess.run(train, {x: [[1, 2, 3, 4]]})
            print("loss %.3f" % sess.run(loss, {x: [[1, 2, 3, 4]]}))

fit()
"""


@pytest.mark.parametrize("first", ['with tf.device("/cpu:0"):', "if True:"])
def test_the_graph_that_trains_is_the_default_one_everywhere(
    run_step: Callable[[str, str], Any], runtime: str, first: str
) -> None:
    found = rewriting.migrate("old.py", GRAPH.replace('with tf.device("/cpu:0"):', first)).text
    assert "graph.as_default()" not in found
    experiment = writing.migrate("old.py", GRAPH).text.partition("# compat note")[0]
    assert "        loss = " in experiment and "as_default" not in experiment
    ran = run_step(found, runtime)
    assert (ran.code, ran.out.splitlines()[-1:]) == (0, ["loss 0.000"]), ran.out


def test_a_thread_has_another_default_graph() -> None:
    text = GRAPH.replace("\nfit()", "\nthreading.Thread(target=fit).start()")
    with pytest.raises(UserError, match="since the thread of fit runs in its graph; use --to=v1"):
        rewriting.migrate("old.py", text)


# Of the first tutorials: variables on a parameter server, and what a worker computes.
APART = """\
import numpy as np
import compat.v1 as tf

tf.app.flags.DEFINE_string("job_name", "worker", "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2223"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=0)
if FLAGS.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    weights = tf.Variable(tf.zeros([4, 1]))
with tf.device("/job:worker/task:0"):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    train = tf.train.GradientDescentOptimizer(0.125).minimize(loss)
sv = tf.train.Supervisor()
with sv.managed_session(server.target) as sess:
    for i in range(20):
        sess.run(train, {x: np.eye(4)})
sv.stop()
print("made")
"""


def test_variables_in_a_block_of_their_own_are_made_in_the_step(
    run_pair: Callable[[str, str], str], runtime: str
) -> None:
    new = rewritten(APART)
    assert '    with tf.device("/job:ps/task:0"):\n        weights =' in new
    assert "made" in run_pair(new, runtime)
