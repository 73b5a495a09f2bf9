"""What plain sessions take, and the supervisors of migrated programs as well."""

from __future__ import annotations

from typing import Any, Callable

import pytest

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
