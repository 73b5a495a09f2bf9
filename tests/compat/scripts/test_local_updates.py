"""The optimizers of `tf.contrib.opt` by which workers train models of their own, in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once
SCRIPT = """
import numpy as np
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("job_name", "", "'ps' or 'worker'")
flags.DEFINE_integer("task_index", 0, "index of the task")
flags.DEFINE_string("kind", "model", "'model' or 'elastic'")
FLAGS = flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": ["pc-01:2222"], "worker": ["pc-02:2222", "pc-03:2222"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
device, chief = "/job:worker/task:%d" % FLAGS.task_index, FLAGS.task_index == 0
opt, sgd = tf.contrib.opt, tf.train.GradientDescentOptimizer(0.1)
is_model = FLAGS.kind == "model"
getter = (opt.ModelAverageCustomGetter if is_model else opt.ElasticAverageCustomGetter)(device)
with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    with tf.variable_scope("", custom_getter=getter):
        w = tf.get_variable("w", initializer=np.float32([0.5, -0.3]))
    loss = tf.reduce_sum(tf.square(w - (1.0 + FLAGS.task_index)))
    with tf.device(device):
        if is_model:
            optimizer = opt.ModelAverageOptimizer(sgd, 2, chief, getter, interval_steps=2)
            hook = optimizer.make_session_run_hook()
        else:
            optimizer = opt.ElasticAverageOptimizer(sgd, 2, getter, 2, synchronous=True)
            hook = optimizer.make_session_run_hook(chief, FLAGS.task_index)
        train = optimizer.minimize(loss, global_step=step)
with tf.train.MonitoredTrainingSession(server.target, is_chief=chief, hooks=[hook]) as session:
    losses = ["%.4f" % session.run([loss, train])[0] for _ in range(6)]
    print("%s; %s" % (" ".join(losses[:2] if FLAGS.kind != "model" else losses), w.device))
"""
# By hand: two steps towards 1 and 2, and then the mean of both, three times.
MEANS = [
    "[worker 0] 1.9400 1.2416 0.4447 0.2846 0.0645 0.0413; /job:worker/task:0",
    "[worker 1] 7.5400 4.8256 4.0287 2.5784 2.3582 1.5093; /job:worker/task:1",
]
# Until workers exchange, each has its own steps; later ones depend on how exchanges interleave.
APART = [
    "[worker 0] 1.9400 1.2416; /job:worker/task:0",
    "[worker 1] 7.5400 4.8256; /job:worker/task:1",
]


@pytest.mark.cluster
@pytest.mark.feature("scripts")
@pytest.mark.parametrize(("kind", "expected"), [("model", MEANS), ("elastic", APART)])
def test_workers_train_models_of_their_own(
    run_script: RunScript, kind: str, expected: list[str]
) -> None:
    options = ("--cluster", "ps=1,worker=2")
    ran = run_script(SCRIPT, f"--kind={kind}", options=options, seconds=200)
    assert ran.code == 0, ran.out + ran.err
    assert sorted(line for line in ran.out.splitlines() if "/job:worker" in line) == expected
