"""A chief that ends first waits for the workers that still train, and saves their updates."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.cluster.liveness.departures import GRACE_SECS
from tests.conftest import environment

if TYPE_CHECKING:
    from tests.conftest import StartCluster

pytestmark = [pytest.mark.once, pytest.mark.long]
EXAMPLES = [6, 40]
TOTAL = sum(n * (n + 1) // 2 for n in EXAMPLES)
SCRIPT = """
import time
import tensorflow as tf
tf.app.flags.DEFINE_string("job_name", "worker", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.app.flags.DEFINE_string("ps_hosts", "localhost:21110", "")
tf.app.flags.DEFINE_string("worker_hosts", "localhost:21111,localhost:21112", "")
tf.app.flags.DEFINE_string("logdir", "", "")
F = tf.app.flags.FLAGS

def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": F.ps_hosts.split(","), "worker": F.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=F.job_name, task_index=F.task_index)
    if F.job_name == "ps":
        server.join()
        return
    chief = F.task_index == 0
    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % F.task_index, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        with tf.device("/job:worker/task:%d" % F.task_index):
            data = tf.data.Dataset.range(6 if chief else 40)
            batch = tf.data.make_one_shot_iterator(data).get_next()
        total = tf.get_variable("total", initializer=tf.constant(0, tf.int64))
        with tf.control_dependencies([tf.assign_add(total, batch + 1, use_locking=True)]):
            train = tf.assign_add(step, 1, use_locking=True)
    if "SUPERVISOR":
        sv = tf.train.Supervisor(is_chief=chief, logdir=F.logdir, save_model_secs=600)
        sv.summary_writer
        with sv.managed_session(server.target) as s:
            try:
                while True:
                    s.run(train)
                    time.sleep(0.1)
            except tf.errors.OutOfRangeError:
                pass
    else:
        with tf.train.MonitoredTrainingSession(
                master=server.target, is_chief=chief, checkpoint_dir=F.logdir or None,
                save_checkpoint_secs=600) as s:
            while not s.should_stop():
                s.run(train)
                time.sleep(0.1)
    if chief:
        read = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(F.logdir)).get_tensor
        print("LAST", read("global_step"), read("total"))

if __name__ == "__main__":
    tf.app.run()
"""


@pytest.mark.parametrize("kind", ["managed", "stop", "monitored"])
def test_updates_after_the_chiefs_are_saved(
    start_cluster: StartCluster, programs: Path, runtime: str, kind: str, tmp_path: Path
) -> None:
    given = {"kind": kind, "logdir": str(tmp_path / "logs"), "examples": EXAMPLES}
    with start_cluster(programs / "uneven.py", runtime, ps=1, worker=2) as cluster:
        tasks = [cluster.start("ps"), cluster.start("worker", 1, **given)]
        chief = cluster.start("worker", 0, **given)
        assert chief.report == {"global_step": sum(EXAMPLES), "total": TOTAL}
        assert [task.wait().code for task in tasks] == [0, 0]


@pytest.mark.parametrize("slow", ["worker", "chief"])
def test_none_is_missed_where_one_is_slow(
    start_cluster: StartCluster, programs: Path, slow: str, tmp_path: Path
) -> None:
    """A worker whose session takes long to open, or a chief that stops after all have left."""
    given = {"kind": "stop", "logdir": str(tmp_path / "logs"), "examples": EXAMPLES}
    if slow == "chief":
        given["stops_after"] = str(tmp_path / "over")
    with start_cluster(programs / "uneven.py", "legacy", ps=1, worker=2) as cluster:
        cluster.start("ps")
        cluster.start("worker", 1, **given, fills_for=GRACE_SECS + 4 if slow == "worker" else 0)
        chief = cluster.start("worker", 0, **given)
        assert chief.report == {"global_step": sum(EXAMPLES), "total": TOTAL}


def test_a_chief_does_not_wait_for_a_worker_that_was_lost(
    start_cluster: StartCluster, programs: Path, tmp_path: Path
) -> None:
    given = {"kind": "managed", "logdir": str(tmp_path / "logs"), "examples": [60, 100000]}
    with start_cluster(programs / "uneven.py", "legacy", ps=1, worker=2) as cluster:
        cluster.start("ps")
        worker = cluster.start("worker", 1, **given)
        chief = cluster.start("worker", 0, **given)
        worker.wait_until_it_says("made 10")
        chief.wait_until_it_says("made 59")
        chief.wait_until_it_says("the chief has made its updates; waiting for those of")
        worker.send(signal.SIGKILL)
        assert 70 <= chief.report["global_step"] < 100000


def test_a_chief_stops_its_threads_before_it_waits(
    start_cluster: StartCluster, programs: Path, tmp_path: Path
) -> None:
    """Else one that trains would go on, and make updates after the last checkpoint."""
    given = {"kind": "stop", "logdir": str(tmp_path / "logs"), "examples": [6, 120]}
    with start_cluster(programs / "uneven.py", "legacy", ps=1, worker=2) as cluster:
        cluster.start("ps")
        cluster.start("worker", 1, **given)
        chief = cluster.start("worker", 0, **given, loops=True)
        assert chief.report["global_step"] == 126
        before, waits, after = chief.said.partition("waiting for those of")
        assert waits
        assert "a call of the loop" in before
        assert "a call of the loop" not in after


def test_a_chief_that_fails_does_not_wait(
    start_cluster: StartCluster, programs: Path, tmp_path: Path
) -> None:
    """Its program calls `stop` in a `finally`, as with TensorFlow, which ends at once as well."""
    given = {"kind": "stop", "logdir": str(tmp_path / "logs"), "examples": [6, 100000]}
    with start_cluster(programs / "uneven.py", "legacy", ps=1, worker=2) as cluster:
        cluster.start("ps")
        cluster.start("worker", 1, **given)
        chief = cluster.start("worker", 0, **given, fails=True)
        assert chief.wait().code == 1
        assert chief.complaints.rstrip().endswith("ValueError: the chief fails")
        assert "waiting for those of" not in chief.said


ESTIMATOR = """
import json, os
import tensorflow as tf
chief = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "chief"

def model_fn(features, labels, mode):
    total = tf.get_variable("total", initializer=0.0)
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(1.0, use_locking=True).minimize(
        -total * features["x"], step)
    return tf.estimator.EstimatorSpec(mode, loss=total, train_op=train)

def data():
    whole = tf.data.Dataset.range(1, 7 if chief else 41)
    return whole.map(lambda x: {"x": tf.cast(x, tf.float32)})

config = tf.estimator.RunConfig("logs", save_checkpoints_steps=1000)
model = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(
    model, tf.estimator.TrainSpec(data), tf.estimator.EvalSpec(data, steps=1))
if chief:
    read = model.get_variable_value
    print("LAST %d %d" % (read("global_step"), read("total")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["monitored", "supervisor", "estimator"])
def test_old_scripts(kind: str, runtime: str, tmp_path: Path) -> None:
    """The chief of the estimator is done before its worker begins, which the package delays."""
    is_supervisor = "True" if kind == "supervisor" else "False"
    script = ESTIMATOR if kind == "estimator" else SCRIPT.replace('"SUPERVISOR"', is_supervisor)
    (tmp_path / "script.py").write_text(script)
    argv = [sys.executable, "-m", "compat", "run", f"--runtime={runtime}", "--cluster"]
    jobs = "ps=1,chief=1,worker=1" if kind == "estimator" else "ps=1,worker=2"
    done = subprocess.run(
        [*argv, jobs, "script.py", *([] if kind == "estimator" else ["--logdir=logs"])],
        cwd=str(tmp_path),
        env=environment(),
        timeout=500,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    out = done.stdout.decode()
    assert done.returncode == 0, out
    assert f"LAST {sum(EXAMPLES)} {TOTAL}" in out
