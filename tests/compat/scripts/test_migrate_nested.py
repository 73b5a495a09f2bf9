"""`python -m compat migrate`: scopes and devices in each other, with what runs the graph inside."""

from __future__ import annotations

import pytest

from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
NESTED = """\
import numpy as np
import compat.v1 as tf

tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS

def train():
    setter = tf.train.replica_device_setter(ps_tasks=1)
    with tf.device("/job:worker/task:%d" % FLAGS.task_index):
        with tf.variable_scope("model"):
            with tf.device(setter):
                step = tf.Variable(0, trainable=False)
                x = tf.placeholder(tf.float32, [None, 4])
                loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 1) - 1))
                opt = tf.train.SyncReplicasOptimizer(
                    tf.train.GradientDescentOptimizer(0.1), 1, total_num_replicas=1)
                pairs = opt.compute_gradients(loss)
                train = opt.apply_gradients(pairs, global_step=step)
                runners = [opt.get_chief_queue_runner()]
                tokens = opt.get_init_tokens_op()
                saver = tf.train.Saver()
                # Runs it.
                sv = tf.train.Supervisor(global_step=step, saver=saver)
                session = sv.prepare_or_wait_for_session("")
                sv.start_queue_runners(session, runners)
                session.run(tokens)
                for _ in range(9):
                    _, value = session.run([train, loss], feed_dict={x: np.ones([3, 4])})
                    print(value)

train()
"""


def test_a_step_ends_with_the_graph() -> None:
    migrated = rewriting.migrate("nested.py", NESTED)
    build, _, rest = migrated.text.partition("build = compat.step(build")
    assert build.index("with tf.device(setter):") < build.index("loss =")
    assert not migrated.remarks
    assert "compat.Supervisor" in rest and "compat.Supervisor" not in build
    assert "\n        # Runs it.\n        sv = compat.Supervisor()\n" in rest


def test_an_experiment_has_the_scope_and_no_device() -> None:
    text = writing.migrate("nested.py", NESTED).text
    experiment = text[: text.index("# compat ")]
    assert "device" not in experiment
    assert "def gradients" not in experiment  # All of them are applied as they are.
    assert (
        """\
    def loss(self, batch, training):
        with tf.variable_scope("model"):
            x = """
        in experiment
    )
    compile(experiment, "experiment", "exec")
