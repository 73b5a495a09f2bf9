"""`python -m compat migrate --to=compat`: parameter servers that wait in a session for a queue."""

from __future__ import annotations

from typing import Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# As a widely copied answer of 2016 ends its parameter servers.
WAITING = """\
import sys
import compat.v1 as tf

tf.app.flags.DEFINE_string("job_name", "worker", "")
FLAGS = tf.app.flags.FLAGS

def create_done_queue(i):
    with tf.device("/job:ps/task:%d" % i):
        return tf.FIFOQueue(1, tf.int32, shared_name="done_queue" + str(i))

def create_done_queues():
    return [create_done_queue(i) for i in range(1)]

def main(_):
    cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2223"]})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=0)
    if FLAGS.job_name == "ps":
        sess = tf.Session(server.target)
        queue = create_done_queue(0)
        for i in range(1):
            sess.run(queue.dequeue())
            print("received done %d" % i)
    else:
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            x = tf.placeholder(tf.float32, [None, 4])
            global_step = tf.Variable(0, name="global_step", trainable=False)
            loss = tf.reduce_sum(tf.square(x * tf.Variable(1.0)))
            opt = tf.train.GradientDescentOptimizer(0.01)
            train = opt.minimize(loss, global_step=global_step)
            config = tf.ConfigProto(allow_soft_placement=True)
            enq_ops = []
            for q in create_done_queues():
                qop = q.enqueue(1)
                enq_ops.append(qop)
        with tf.train.MonitoredTrainingSession(server.target, config=config) as sess:
            for i in range(20):
                value, _ = sess.run([loss, train], {x: [[1, 2, 3, 4]]})
            print("step %d" % tf.train.global_step(sess, global_step))
            # Tell the servers.
            for op in enq_ops:
                sess.run(op)
        print("loss %.3f" % value)

tf.app.run()
"""


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_its_servers_join_and_nobody_fills_the_queue() -> None:
    found = rewritten(WAITING)
    assert "    if server.serves:\n        sys.exit(server.join())\n    else:\n" in found
    assert not {"queue", "enq_ops", "qop", "Tell"} & set(found.replace("_", " ").split())
    assert "FIFOQueue" not in found
    assert "compat 1:" not in found
    assert 'int(sess.run(compute_global_step)["global_step"])' in found
    assert "FIFOQueue" not in writing.migrate("old.py", WAITING).text


def test_they_exit_on_either_runtime(runtime: str, run_pair: Callable[[str, str], str]) -> None:
    said = run_pair(rewritten(WAITING), runtime)
    assert "step 20\n" in said
    assert "loss 0.000\n" in said


def test_a_queue_that_is_made_before_the_branch_is_left_out_too() -> None:
    line, several = "        queue = create_done_queue(0)\n", "def create_done_queues"
    text = WAITING.replace(line, "").replace("for q in create_done_queues()", "for q in [queue]")
    text = text.replace("    if FLAGS.job", f"{line[4:]}    if FLAGS.job")
    text = text[: text.index(several)] + text[text.index("def main") :]
    assert "FIFOQueue" not in rewritten(text)


def test_what_tells_and_does_more_stays() -> None:
    """The servers join all the same."""
    text = WAITING.replace("sess.run(op)", "sess.run([op, global_step])")
    found = rewritten(text)
    assert "sys.exit(server.join())" in found
    assert "enq_ops.append(qop)" in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sess.run(queue.dequeue())", "sess.run(tf.global_variables_initializer())"),
        ('print("received done %d" % i)', "train_model(i)"),
        ("tf.Session(server.target)", "tf.Session()"),
    ],
)
def test_servers_that_do_more_are_refused(old: str, new: str) -> None:
    text = WAITING.replace(old, new)
    assert text != WAITING
    with pytest.raises(UserError, match=r"wait in a session, .*; write server.join\(\) there"):
        rewritten(text)


# One session trains, and another one of the same variables evaluates.
EVALUATES = (
    WAITING[: WAITING.index("def create_done_queue(")]
    + """\
def main(_):
    cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2223"]})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=0)
    if FLAGS.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 4])
        step = tf.Variable(0, name="global_step", trainable=False)
        loss = tf.reduce_sum(tf.square(x * tf.Variable(1.0)))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
    init_op = tf.initialize_all_variables()
    sv = tf.train.Supervisor(is_chief=True, init_op=init_op, recovery_wait_secs=1)
    sess = sv.prepare_or_wait_for_session(server.target)
    for i in range(20):
        sess.run(train, {x: [[1, 2, 3, 4]]})
    with tf.Session(server.target) as evaluation:
        print("loss %.3f" % loss.eval({x: [[1, 2, 3, 4]]}, session=evaluation))

tf.app.run()
"""
)


def test_a_session_behind_another_one_initializes_nothing(
    runtime: str, run_pair: Callable[[str, str], str]
) -> None:
    """It waits for variables that have been, and sees all steps."""
    found = rewritten(EVALUATES)
    assert "with compat.Supervisor(is_chief=False).managed_session(server.target) as" in found
    assert "loss 0.000\n" in run_pair(found, runtime)
    old, new = "    with tf.Session(server.target)", '    target = ""\n    with tf.Session(target)'
    assert "is_chief=False" not in rewritten(EVALUATES.replace(old, new))


def test_what_replicas_need_is_asked_for_behind_the_block(
    runtime: str, run_pair: Callable[[str, str], str]
) -> None:
    made = "tf.train.GradientDescentOptimizer(0.01)"
    text = EVALUATES.replace(
        f"train = {made}",
        f"opt = tf.train.SyncReplicasOptimizer({made}, 1, 1)\n        train = opt",
    )
    asked = "    runner, tokens = opt.get_chief_queue_runner(), opt.get_init_tokens_op()\n"
    text = text.replace("    init_op = ", f"{asked}    init_op = ")
    text = text.replace("init_op=init_op", "init_op=init_op, local_init_op=opt.chief_init_op")
    started = "    sv.start_queue_runners(sess, [runner])\n    sess.run(tokens)\n"
    said = run_pair(rewritten(text.replace("    for i in", f"{started}    for i in")), runtime)
    assert "loss 0.000\n" in said
