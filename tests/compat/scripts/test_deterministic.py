"""`compat run --deterministic`: in the script's process, in its children, in tasks of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat._tensorflow import tf

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not hasattr(tf.config.experimental, "enable_op_determinism"), reason="TensorFlow 2.8 on"
    ),
]
SHOWS = """
import subprocess, sys
import tensorflow as tf
from tensorflow.python.framework import config
print("deterministic:", config.is_op_determinism_enabled())
tf.set_random_seed(1)
with tf.Session() as session:
    print("drawn:", session.run(tf.random_normal([])) is not None)
if len(sys.argv) < 2:
    print(subprocess.check_output([sys.executable, __file__, "child"]).decode())
"""
CLUSTER = """
import tensorflow as tf
from tensorflow.python.framework import config
flags = tf.app.flags
flags.DEFINE_string("job_name", "", "")
flags.DEFINE_integer("task_index", 0, "")
FLAGS = flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": ["pc-01:2222"], "worker": ["pc-02:2222"]})
print("deterministic: %s" % config.is_op_determinism_enabled())
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    number = tf.constant(1)
tf.Session(server.target).run(number)  # The parameter server has printed its line by then.
"""


@pytest.mark.parametrize(
    "options", [(), ("--deterministic",), ("--deterministic", "--runtime=modern")]
)
def test_a_script_and_its_children_are(run_script: RunScript, options: tuple[str, ...]) -> None:
    ran = run_script(SHOWS, options=options)
    assert (ran.code, ran.out.count(f"deterministic: {bool(options)}")) == (0, 2), ran
    assert ran.out.count("drawn: True") == 2


@pytest.mark.cluster
def test_each_task_of_a_cluster_is(run_script: RunScript) -> None:
    ran = run_script(CLUSTER, options=("--deterministic", "--cluster=ps=1,worker=1"))
    assert ran.code == 0, ran
    lines = ran.out.splitlines()
    assert "[worker 0] deterministic: True" in lines
    assert "[ps 0] deterministic: True" in lines
