"""Programs of TensorFlow 1.x, unmodified, on both runtimes: the same output, to the last digit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat._tensorflow import coordinator_module
from compat.runtime.graphs.cluster import sees_variables_of_others
from tests.compat.scripts.conftest import run_python

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.skipif(not coordinator_module(), reason="no modern runtime before 2.4")
SEVERAL_PROGRAMS = pytest.mark.skipif(
    not sees_variables_of_others(), reason="one program for each cluster"
)
PROGRAM = Path(__file__).with_name("graph_program.py")
SECTIONS = re.findall(r"@section\ndef (\w+)", PROGRAM.read_text(encoding="utf-8"))
CLUSTER = """
import sys
import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
hosts = ["pc-%d:2222" % i for i in range(4)]
cluster = tf.train.ClusterSpec({"ps": hosts[:2], "worker": hosts[2:]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
own = "/job:worker/task:%d" % FLAGS.task_index
with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    total = tf.get_variable("total", [], initializer=tf.zeros_initializer(), use_resource=True)
    # A function of the program, which the setter would place as well.
    ones = tf.data.Dataset.range(50).map(lambda number: tf.cast(number * 0 + 1, tf.float32))
    x = ones.make_one_shot_iterator().get_next()
    add = tf.group(tf.assign_add(total, x, use_locking=True), tf.assign_add(step, 1))
with tf.device("/cpu:0"):
    nowhere = tf.Variable(0.0)
    add = tf.group(add, tf.assign_add(nowhere, x, use_locking=True))
with tf.device(own):  # Stored by the server of this program.
    calls = tf.Variable(0.0, collections=["own"])
    add = tf.group(add, tf.assign_add(calls, 1.0))
with tf.device("/job:ps/task:1"):
    done = tf.FIFOQueue(2, tf.int32, shapes=[], shared_name="done")
    tell, wait = done.enqueue(FLAGS.task_index), done.dequeue_many(2)
init = tf.global_variables_initializer()
supervisor = tf.train.Supervisor(is_chief=FLAGS.task_index == 0, init_op=init)
with supervisor.prepare_or_wait_for_session(server.target) as session:
    session.run(calls.initializer)
    for _ in range(50):
        session.run(add)
    session.run(tell)
    if FLAGS.task_index == 0:
        found = sorted(session.run(wait))
        totals = tuple(session.run([total, nowhere, calls]))
        print("told by %s: %.0f, %.0f and %.0f" % (([int(i) for i in found],) + totals))
"""
TWO_REPLICAS = ("--cluster", "ps=1,worker=2", "--task_args", "{job} {index}")
# The chief applies the mean of the gradients of both, in a thread of its own.
REPLICAS = """
import sys
import tensorflow as tf

job, index, hosts = sys.argv[1], int(sys.argv[2]), ["pc-%d:2222" % i for i in range(3)]
cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
is_chief, own = index == 0, "/job:worker/task:%d" % index
with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
    step = tf.Variable(0, name="global_step", trainable=False)
    w = tf.Variable([3.0])
    loss = tf.reduce_sum(tf.square(w))
    replicas = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=2
    )
    train = replicas.minimize(loss, global_step=step)
    init = tf.global_variables_initializer()
    runner, tokens = replicas.get_chief_queue_runner(), replicas.get_init_tokens_op()
supervisor = tf.train.Supervisor(
    is_chief=is_chief,
    init_op=init,
    local_init_op=replicas.chief_init_op if is_chief else replicas.local_step_init_op,
    ready_for_local_init_op=replicas.ready_for_local_init_op,
    global_step=step,
    recovery_wait_secs=1,
)
with supervisor.prepare_or_wait_for_session(server.target) as session:
    if is_chief:
        session.run(tokens)
        supervisor.start_queue_runners(session, [runner])
    at = 0
    while at < 20:
        _, at = session.run([train, step])
    print("ended at %d" % at)
"""

# `replica_device_setter` names the job "worker" without a task, in the master as well.
ANY_WORKER = """
import json, os
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    numbers = tf.data.Dataset.range(100).make_one_shot_iterator().get_next()
    total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer())
    add = tf.group(tf.assign_add(total, numbers, use_locking=True), tf.assign_add(step, 1))
with tf.device("/job:ps"):
    done = tf.FIFOQueue(3, tf.int32, shapes=[], shared_name="done")
    tell, wait = done.enqueue(index), done.dequeue_many(3)
    leave = tf.FIFOQueue(2, tf.int32, shapes=[], shared_name="leave")
    release, released = leave.enqueue_many([[0, 0]]), leave.dequeue()
with tf.train.MonitoredTrainingSession(server.target, is_chief=job == "master") as session:
    for _ in range(100):
        session.run(add)
    session.run(tell)
    if job == "master":
        session.run(wait)
        print("total %d" % session.run(total))
        session.run(release)
    else:  # The master's operations run here.
        session.run(released)
"""

BLOCKED = """
import json, os, threading, time
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
cluster, job = tf.train.ClusterSpec(config["cluster"]), config["task"]["type"]
server = tf.train.Server(cluster, job_name=job, task_index=0)
if job == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    queue = tf.FIFOQueue(1, tf.float32, shapes=[])
put, ends = queue.enqueue(1.0), []

def block():
    try:
        session.run(put)
    except tf.errors.OpError as error:
        ends.append(type(error).__name__)

session = tf.Session(server.target)
session.run(put)
threading.Thread(target=block, daemon=True).start()
time.sleep(2)
session.close()
print("at the end: %s" % ends)
tf.logging.set_verbosity(tf.logging.INFO)
tf.logging.info("one line")
"""


@pytest.fixture(scope="module")
def outputs() -> dict[str, dict[str, str]]:
    """What each section of the program prints, by runtime."""
    found = {}
    for runtime in ("legacy", "modern"):
        ran = run_python("-m", "compat", "run", f"--runtime={runtime}", str(PROGRAM))
        assert ran.returncode == 0, ran.stderr
        found[runtime] = dict(part.split("\n", 1) for part in ran.stdout.split("## ")[1:])
    return found


@pytest.mark.parametrize("section", SECTIONS)
def test_prints_the_same_on_both(section: str, outputs: dict[str, dict[str, str]]) -> None:
    assert outputs["modern"][section] == outputs["legacy"][section] != ""


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("runtime", ["legacy", pytest.param("modern", marks=SEVERAL_PROGRAMS)])
def test_two_programs_share_variables_and_a_queue_on_two_servers(
    runtime: str, run_script: RunScript
) -> None:
    options = (f"--runtime={runtime}", "--cluster", "ps=2,worker=2")
    ran = run_script(CLUSTER, options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert "told by [0, 1]: 100, 100 and 50" in ran.out


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("runtime", ["legacy", pytest.param("modern", marks=SEVERAL_PROGRAMS)])
def test_a_job_without_a_task_is_the_own_task_or_the_first(
    runtime: str, run_script: RunScript
) -> None:
    options = (f"--runtime={runtime}", "--cluster", "ps=1,master=1,worker=2")
    ran = run_script(ANY_WORKER, options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert f"total {3 * sum(range(100))}" in ran.out


@pytest.mark.cluster
@pytest.mark.long
def test_closing_a_session_waits_for_the_calls_that_it_cancels(run_script: RunScript) -> None:
    """Or Python might exit while their threads are in TensorFlow, which aborts the process."""
    options = ("--runtime=modern", "--cluster", "ps=1,worker=1")
    ran = run_script(BLOCKED, options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert "at the end: ['CancelledError']" in ran.out
    assert (ran.out + ran.err).count("one line") == 1  # The cluster adds no handler of logs.


@pytest.mark.cluster
@pytest.mark.long
@SEVERAL_PROGRAMS
def test_replicas_of_two_programs_go_on_together(run_script: RunScript) -> None:
    """The step of each token is the one behind the update, or their gradients would be too old."""
    options = ("--runtime=modern", *TWO_REPLICAS)
    ran = run_script(REPLICAS, options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert len(re.findall(r"ended at 2\d", ran.out)) == 2, ran.out


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("runtime", ["legacy", pytest.param("modern", marks=SEVERAL_PROGRAMS)])
def test_a_replica_that_has_left_is_not_waited_for(runtime: str, run_script: RunScript) -> None:
    """TensorFlow's chief waits for ever for its gradients, in silence."""
    options = (f"--runtime={runtime}", *TWO_REPLICAS)
    # Without tokens at the start, the chief makes no update before the other has begun.
    script = REPLICAS.replace("get_init_tokens_op()", "get_init_tokens_op(0)")
    script = script.replace("at < 20", "at < (40 if is_chief else 10)")
    ran = run_script(script, options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert re.search(r"worker 0\] ended at 4\d", ran.out), ran.out
    assert re.search(r"worker 1\] ended at 1\d", ran.out), ran.out


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize("runtime", ["legacy", pytest.param("modern", marks=SEVERAL_PROGRAMS)])
def test_a_replica_that_does_not_answer_is_named(runtime: str, run_script: RunScript) -> None:
    """TensorFlow waits for its gradients in silence."""
    options = (f"--runtime={runtime}", *TWO_REPLICAS)
    stopped = """
        if at >= 5 and not is_chief and "subprocess" not in globals():
            import os, signal, subprocess
            subprocess.Popen(["sh", "-c", "sleep 30; kill -CONT %d" % os.getpid()])
            os.kill(os.getpid(), signal.SIGSTOP)
"""
    line = "        _, at = session.run([train, step])"
    script = REPLICAS.replace("get_init_tokens_op()", "get_init_tokens_op(0)")
    ran = run_script(script.replace(line, stopped + line), options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert re.search(r"worker 0\] .*waiting for /job:worker/task:1 at \S+: no answer \(", ran.out)
    assert len(re.findall(r"ended at 2\d", ran.out)) == 2, ran.out


@pytest.mark.cluster
@pytest.mark.long
def test_a_chief_of_replicas_does_not_wait_for_a_worker_that_has_left(
    run_script: RunScript,
) -> None:
    options = TWO_REPLICAS
    late = "\nif is_chief:\n    import time\n    time.sleep(10)\n"
    ran = run_script(REPLICAS + late, options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    assert "waiting for /job:worker" not in ran.out + ran.err


@pytest.mark.cluster
@pytest.mark.skipif(sees_variables_of_others(), reason="several programs share variables")
def test_two_programs_are_refused_where_they_share_no_variables(run_script: RunScript) -> None:
    options = ("--runtime=modern", "--cluster", "ps=1,worker=2")
    script = CLUSTER.replace("range(4)", "range(3)").replace("[:2]", "[:1]").replace("[2:]", "[1:]")
    ran = run_script(script, options=options, seconds=280)
    assert ran.code != 0
    assert "use --runtime=legacy, or a newer TensorFlow" in ran.out + ran.err
