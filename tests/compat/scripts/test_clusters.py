"""Whole clusters of old scripts: `--cluster`, `--local`, `--track`, and `compat serve`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tensorboard.plugins.hparams.metadata import parse_session_start_info_plugin_data

from compat.cluster import ports
from compat.datasets import idx
from compat.datasets.published import FILES
from compat.scripts.commands import serve
from compat.tracking.mlflow import mlflow_loader
from compat.tracking.tensorboard.eventfile import event_files, read_events
from compat.tracking.tensorboard.summaries import SESSION_END, SESSION_START

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once
# As they were written: hosts that nobody has, a device without its slash, a protocol that is gone,
# a writer on every machine, and a parameter server that joins for ever.
SCRIPT = """
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("job_name", "", "'ps' or 'worker'")
flags.DEFINE_integer("task_index", 0, "index of the task")
flags.DEFINE_float("rate", 0.1, "learning rate")
FLAGS = flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": ["pc-01:2222"], "worker": ["pc-02:2222", "pc-03:2222 "]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index,
                         protocol="grpc+gdr")
if FLAGS.job_name == "ps":
    server.join()
else:
    setter = tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
    with tf.device(setter):
        step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0),
                               trainable=False)
        with tf.device("job:ps/task:0"):
            weight = tf.Variable(5.0)
        loss = tf.square(weight)
        train = tf.train.GradientDescentOptimizer(FLAGS.rate).minimize(loss, global_step=step)
        tf.scalar_summary("the loss", loss)
        summary = tf.merge_all_summaries()
        init = tf.initialize_all_variables()
    supervisor = tf.train.Supervisor(is_chief=FLAGS.task_index == 0, global_step=step,
                                     init_op=init)
    with supervisor.prepare_or_wait_for_session(server.target) as session:
        writer = tf.train.SummaryWriter("logs", graph=tf.get_default_graph())
        for _ in range(20):
            _, text, now = session.run([train, summary, step])
            writer.add_summary(text, now)
        writer.flush()
        print("ended with loss below one: %s" % (session.run(loss) < 1.0))
    supervisor.stop()
"""


# What the chief of a tracked cluster reads as well, when all tasks have been sampled once: a task
# that ends before that, or before the chief has begun the record, has no sample.
DATA = """
    import glob, os, time
    sizes = lambda: [os.path.getsize(path) for path in glob.glob("logs/system/*/tracking.jsonl")]
    while len([size for size in sizes() if size]) < 3:
        time.sleep(0.1)
    if FLAGS.task_index == 0:
        from tensorflow.examples.tutorials.mnist import input_data
        input_data.read_data_sets("data", validation_size=1)
"""


@pytest.mark.cluster
def test_one_command_starts_all_ends_all_and_leaves_a_record(
    run_script: RunScript, empty_store: Path, tmp_path: Path
) -> None:
    shutil.copy(str(empty_store), str(tmp_path))
    (tmp_path / "data").mkdir()
    for name in FILES:
        array = np.zeros([3, 28, 28] if "images" in name else [3], np.uint8)
        (tmp_path / "data" / name).write_bytes(idx.encode(array))
    # Three tasks load TensorFlow, and one MLflow as well, beside what else the machine has to do.
    options = ("--track", "--cluster", "ps=1,worker=2")
    ran = run_script(SCRIPT + DATA, "--rate=0.2", options=options, seconds=280)
    assert ran.code == 0, ran.out + ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "compat: arguments of each task: --job_name={job} --task_index={index}"
    for worker in ("worker 0", "worker 1"):
        assert f"[{worker}] ended with loss below one: True" in lines
        assert f"[{worker}] compat: protocol 'grpc+gdr' is replaced by 'grpc'" in lines
        assert f"[{worker}] compat: address 'pc-03:2222 ' is replaced by 'pc-03:2222'" in lines
        assert f"[{worker}] compat: device 'job:ps/task:0' is replaced by '/job:ps/task:0'" in lines

    values = [
        value
        for path in event_files(str(tmp_path / "logs"))
        for _, event in read_events(path)
        for value in event.summary.value
    ]
    tags = [value.tag for value in values]
    assert tags.count("the loss") == 20, "the chief's alone"
    assert [tag for tag in tags if tag.startswith("_hparams_")] == [SESSION_START, SESSION_END]
    start = values[tags.index(SESSION_START)].metadata.plugin_data.content
    assert list(parse_session_start_info_plugin_data(start).hparams) == ["rate"]
    with sqlite3.connect(str(tmp_path / "mlflow.db")) as database:
        assert database.execute("select status from runs").fetchall() == [("FINISHED",)]
        params = dict(database.execute("select key, value from params"))
        assert (params["rate"], params["job_name"]) == ("0.2", "worker")
        count = "select count(*) from metrics where key = 'the loss'"
        assert database.execute(count).fetchall() == [(20,)]
        names = {name for (name,) in database.execute("select distinct key from metrics")}
        tasks = {name.split("/")[1] for name in names if name.startswith("workload/")}
        assert tasks == {"ps-0", "worker-0", "worker-1"}
        tags = dict(database.execute("select key, value from tags"))
        assert tags["cluster"] == "1 ps, 2 worker"
        assert tags["mlflow.source.name"].endswith(".py")
        if sys.version_info >= (3, 8):  # Whose last MLflow, 1.30, has no data sets.
            found = database.execute("select name, dataset_profile from datasets").fetchall()
            assert found == [("data", '{"train": 3, "test": 3}')]
    (line,) = [line for line in lines if "Model:" in line]
    assert line.startswith("[worker 0] Model:        none logged: the script writes no SavedModel")


@pytest.mark.slow
def test_a_saved_model_of_a_tracked_script_is_a_model_of_mlflow(
    run_script: RunScript, empty_store: Path, tmp_path: Path
) -> None:
    shutil.copy(str(empty_store), str(tmp_path))
    ran = run_script(
        """
        import tensorflow as tf
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        with tf.Session() as session:
            tf.saved_model.simple_save(session, "exported", {"x": x}, {"twice": 2.0 * x})
        """,
        options=("--track",),
        seconds=280,
    )
    assert ran.code == 0, ran.out + ran.err
    assert re.fullmatch(r"Model:        runs:/[0-9a-f]{32}/model", ran.out.splitlines()[-1])
    (described,) = tmp_path.glob("mlflow-artifacts/**/MLmodel")
    assert "twice" in described.read_text("utf-8")
    (folder,) = {path.parent for path in described.parent.rglob("saved_model.pb")}
    assert list(described.parent.glob("*example*"))
    model = mlflow_loader.SavedModel(str(folder))
    assert model.predict({"x": [[1.0, 2.0]]})["twice"].tolist() == [[2.0, 4.0]]


@pytest.mark.cluster
def test_replicas_that_update_together_end_together(run_script: RunScript) -> None:
    ran = run_script(
        """
        import sys
        print("forked: %s" % ("tensorflow.python" in sys.modules))
        import tensorflow as tf
        tf.app.flags.DEFINE_string("job_name", "", "")
        tf.app.flags.DEFINE_integer("task_index", 0, "")
        FLAGS = tf.app.flags.FLAGS
        cluster = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]})
        server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        is_chief = FLAGS.task_index == 0
        setter = tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
        with tf.device(setter):
            step = tf.train.create_global_step()
            loss = tf.square(tf.Variable(5.0))
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(0.1), 2, total_num_replicas=2)
            train = optimizer.minimize(loss, global_step=step)
        hooks = [tf.train.StopAtStepHook(last_step=20), optimizer.make_session_run_hook(is_chief)]
        with tf.train.MonitoredTrainingSession(server.target, is_chief, hooks=hooks) as session:
            while not session.should_stop():
                session.run(train)
        print("ended")
        """,
        # The deadline is sooner than the two minutes for which TensorFlow's coordinator waits.
        options=("--cluster", "ps=1,worker=2"),
    )
    assert ran.code == 0, ran.out + ran.err
    forked = f"[ps 0] forked: {sys.platform == 'linux'}"
    assert {forked, "[worker 0] ended", "[worker 1] ended"} <= set(ran.out.splitlines())


@pytest.mark.long
@pytest.mark.cluster
def test_first_failure_stops_all(run_script: RunScript) -> None:
    failing = SCRIPT.replace("for _ in range(20):", "for _ in undefined:")
    # It sets what TensorFlow may read as it is loaded, so that is not done before.
    before = "import os, sys\nprint('forked: %s' % ('tensorflow.python' in sys.modules))\n"
    failing = f"{before}os.environ.update(TF_CPP_MIN_LOG_LEVEL='3')\n{failing}"
    ran = run_script(failing, options=("--cluster", "ps=1,worker=1"))
    assert ran.code == 1
    assert "NameError: name 'undefined' is not defined" in ran.out
    assert "worker 0 failed with exit code 1; stopping ps 0" in ran.out.splitlines()
    assert "[ps 0] forked: False" in ran.out.splitlines()


def test_a_task_whose_port_is_in_use_says_so(run_script: RunScript) -> None:
    with ports.reserve() as reservation:
        hosts = f"pc-01:2222={reservation.address},pc-02:2222=127.0.0.1:1,pc-03:2222=127.0.0.1:2"
        ran = run_script(SCRIPT, "--job_name=ps", options=("--hosts", hosts))
    assert ran.code == 2
    assert f"port {reservation.port} of {reservation.address} is in use" in ran.err
    assert ran.err.startswith("error: script.py:")


def test_a_server_in_no_cluster_is_where_it_says(run_script: RunScript) -> None:
    ran = run_script(
        """
        import tensorflow as tf
        server = tf.train.Server.create_local_server()
        session = tf.InteractiveSession(server.target)
        print(tf.mul(6, 7).eval())
        """,
        options=("--local",),
    )
    assert (ran.code, ran.out) == (0, "42\n"), ran.err


@pytest.mark.parametrize("text", ["worker", "worker|", "|h:1", "ps|h:1,ps|h:2", "ps|h"])
def test_malformed_cluster_strings_are_refused(text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compat", "serve", f"--cluster_spec={text}", "--job_name=ps"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=str(Path(serve.__file__).parents[2]),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.cluster
def test_a_client_computes_on_a_standalone_server(run_script: RunScript) -> None:
    reservation = ports.reserve()
    address = reservation.address
    env, pass_fds = reservation.pass_to_child()
    server = subprocess.Popen(
        [
            *(sys.executable, "-u", "-m", "compat", "serve"),
            *(f"--cluster_spec=worker|{address}", "--job_name=worker", "--task_id=0"),
        ],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        text=True,
        cwd=str(Path(serve.__file__).parents[2]),
        pass_fds=pass_fds,
    )
    reservation.release()
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said == (
            f"/job:worker/task:0 serves at {address}; clients connect to grpc://{address}\n"
        )
        ran = run_script(
            f"""
            import tensorflow as tf
            with tf.device("/job:worker/task:0"):
                product = tf.mul(6, 7)
            with tf.Session("grpc://{address}") as session:
                print(session.run(product))
            """
        )
        assert ran.out == "42\n"
    finally:
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait(120) == 0


def test_a_cluster_of_a_module(run_script: RunScript, tmp_path: Path) -> None:
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").touch()
    (tmp_path / "trainer" / "job.py").write_text(
        "import json, os\nTASK = json.loads(os.environ['TF_CONFIG'])['task']\n"
    )
    (tmp_path / "trainer" / "task.py").write_text(
        "import sys\nfrom . import job\nprint(job.TASK['type'], job.TASK['index'], sys.argv[1:])\n"
    )
    options = ("--cluster=worker=2",)
    ran = run_script(None, "-m", "trainer.task", "--steps=3", options=options)
    assert ran.code == 0, ran.err
    assert {f"[worker {i}] worker {i} ['--steps=3']" for i in (0, 1)} < {*ran.out.splitlines()}
    ran = run_script(None, "-m", "trainer.none", options=options)
    place = os.path.join("trainer", "none.py")
    assert ran.code == 2 and f"no module trainer.none here, expected {place}; start" in ran.err
