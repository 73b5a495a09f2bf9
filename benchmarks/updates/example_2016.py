"""The example of 2016, for `python -m compat run`: as it was, with flags for hosts and a clock.

After example.py of github.com/ischlag/distributed-tensorflow-example. Each update is fed, and
fetches a summary, which is written.
"""

from __future__ import annotations

import json
import tempfile
import time

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

for name in ("strategy", "run_token", "job_name", "ps_hosts", "worker_hosts", "dataset"):
    tf.app.flags.DEFINE_string(name, "", "Of the task.")
for name in ("task_index", "max_steps", "warm_up"):
    tf.app.flags.DEFINE_integer(name, 0, "Of the task, or of the clock.")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec(
    {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
)
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
mnist = input_data.read_data_sets("MNIST_data", one_hot=True)

device = tf.train.replica_device_setter(
    worker_device=f"/job:worker/task:{FLAGS.task_index}", cluster=cluster
)
with tf.device(device):
    global_step = tf.get_variable(
        "global_step", [], initializer=tf.constant_initializer(0), trainable=False
    )
    x = tf.placeholder(tf.float32, shape=[None, 784])
    y_ = tf.placeholder(tf.float32, shape=[None, 10])
    tf.set_random_seed(1)
    W1 = tf.Variable(tf.random_normal([784, 100]))
    W2 = tf.Variable(tf.random_normal([100, 10]))
    b1 = tf.Variable(tf.zeros([100]))
    b2 = tf.Variable(tf.zeros([10]))
    a2 = tf.nn.sigmoid(tf.add(tf.matmul(x, W1), b1))
    y = tf.nn.softmax(tf.add(tf.matmul(a2, W2), b2))
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    optimizer = tf.train.GradientDescentOptimizer(0.0005)
    train_op = optimizer.minimize(cross_entropy, global_step=global_step)
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    tf.summary.scalar("cost", cross_entropy)
    tf.summary.scalar("accuracy", tf.reduce_mean(tf.cast(correct, tf.float32)))
    summary_op = tf.summary.merge_all()
    init_op = tf.global_variables_initializer()

sv = tf.train.Supervisor(is_chief=(FLAGS.task_index == 0), global_step=global_step, init_op=init_op)
clock: dict[str, list[float]] = {"steps": [], "times": [], "costs": []}
with sv.prepare_or_wait_for_session(server.target) as sess:
    writer = tf.summary.FileWriter(tempfile.mkdtemp(), graph=tf.get_default_graph())
    step = 0
    while step < FLAGS.max_steps:
        batch_x, batch_y = mnist.train.next_batch(100)
        _, cost, summary, step = sess.run(
            [train_op, cross_entropy, summary_op, global_step], feed_dict={x: batch_x, y_: batch_y}
        )
        writer.add_summary(summary, step)
        if (step >= FLAGS.warm_up and not clock["steps"]) or step >= FLAGS.max_steps:
            clock["steps"].append(int(step))
            clock["times"].append(time.time())
            clock["costs"].append(float(cost))
print(json.dumps(clock))
