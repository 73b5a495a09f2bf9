"""`compat run --ahead`: the equal calls of an unmodified script are made as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat._tensorflow import coordinator_module
from compat.runtime.graphs.cluster import sees_variables_of_others
from tests.compat.scripts.conftest import run_python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once  # The loops of tests/compat/test_gathering.py run on all lines.
RUNTIMES = ["legacy", *(["modern"] if coordinator_module() else [])]
COUNTING = """
import tensorflow as tf

weight = tf.Variable(0.0)
train = tf.assign_add(weight, 1.0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(150):
        _, seen = session.run([train.op, weight])
        LOOK
    print("weight", session.run(weight))
"""
CLUSTER = """
import sys
import numpy as np
import tensorflow as tf

job, index, hosts = sys.argv[1], int(sys.argv[2]), ["pc-%d:2222" % i for i in range(2)]
cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None, 2])
    weight = tf.get_variable("weight", [2, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - 3.0))
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    summary = tf.summary.scalar("loss", loss)
supervisor = tf.train.Supervisor(global_step=step, summary_op=None)
writer = tf.summary.FileWriter("events")
losses, random = [], np.random.RandomState(0)
with supervisor.managed_session(server.target) as session:
    for number in range(200):
        fetched = session.run([train, loss, summary], {x: random.rand(8, 2)})
        losses.append(fetched[1])
        writer.add_summary(fetched[2], number)
print("sum %r" % float(np.sum([float(loss) for loss in losses])))
"""
PROVEN = """
import numpy as np
import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 4])
weight = tf.Variable(tf.random_normal([4, 1]))
shown = tf.matmul(tf.nn.dropout(x, 0.8), weight)
loss = tf.reduce_mean(tf.square(shown - tf.reduce_sum(x, 1, keepdims=True)))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
random = np.random.RandomState(0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    losses = [session.run([train, loss], {x: random.rand(8, 4)})[1] for _ in range(45)]
print(sum(losses))
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("look", "said"),
    [
        ("pass", "compat: --ahead=20: 50 of 150 calls were made in 3 groups"),
        ("assert seen > 0", "140 calls were made alone, since script.py:10 looks at "),
    ],
)
def test_a_line_says_what_it_did(run_script: RunScript, runtime: str, look: str, said: str) -> None:
    ran = run_script(COUNTING.replace("LOOK", look), options=(f"--runtime={runtime}", "--ahead=20"))
    assert (ran.code, "weight 150.0" in ran.out, said in ran.out) == (0, True, True), ran


def test_calls_are_made_when_their_session_is_closed(run_script: RunScript) -> None:
    text = COUNTING.replace("LOOK", "pass").partition("    print(")[0] + "print('seen', seen)\n"
    ran = run_script(text, options=("--ahead=20",))
    assert (ran.code, "seen 150.0" in ran.out) == (0, True), ran


def test_one_call_is_no_group(run_script: RunScript) -> None:
    ran = run_script(COUNTING.replace("LOOK", "pass"), options=("--ahead=1",))
    assert ran.code == 2
    assert "--ahead=1 gathers no calls; give the calls of a group, such as 20" in ran.err


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_worker_of_a_cluster_gathers_calls(run_script: RunScript, runtime: str) -> None:
    if runtime == "modern" and not sees_variables_of_others():
        pytest.skip("one program in a cluster before TensorFlow 2.8")
    options = (f"--runtime={runtime}", "--cluster=ps=1,worker=1", "--task_args={job} {index}")
    sums = []
    for ahead in ((), ("--ahead=20",)):
        ran = run_script(CLUSTER, options=(*options, *ahead))
        assert ran.code == 0, ran
        sums += [line for line in ran.out.splitlines() if " sum " in line]
    assert "--ahead=20: 100 of " in ran.out
    assert len(set(sums)) == 1, sums


@pytest.mark.long
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_proof_leaves_calls_gathered(tmp_path: Path, runtime: str) -> None:
    pytest.importorskip("asttokens")
    pytest.importorskip("fissix")
    (tmp_path / "train.py").write_text(PROVEN, encoding="utf-8")
    side = f"run --runtime={runtime}"
    sides = (f"--a={side}", f"--b={side} --ahead=20")
    done = run_python("-m", "compat", "prove", *sides, "--keep=kept", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done
    none = "largest relative difference 0, of what was added to a variable 0, tolerance 0.0001"
    assert f"equal: 45 losses of 45 training calls; {none}" in done.stdout
    said = (tmp_path / "kept" / "B" / "output.txt").read_text(encoding="utf-8")
    assert "calls were made in " in said, said


@pytest.mark.long
def test_a_proof_sees_what_the_last_gathered_call_does(tmp_path: Path) -> None:
    pytest.importorskip("asttokens")
    pytest.importorskip("fissix")
    (tmp_path / "train.py").write_text(PROVEN, encoding="utf-8")
    head = "import sys\nimport compat\nimport compat.v1 as tf\ncompat.runtime_from(sys.argv)"
    other = PROVEN.replace("import tensorflow as tf", head).replace("(0.1)", "(0.2)")
    (tmp_path / "other.py").write_text(other, encoding="utf-8")
    options = ("--a=run", "--b=other.py --ahead=20", "--steps=1")
    done = run_python("-m", "compat", "prove", *options, "train.py", cwd=tmp_path)
    assert done.returncode == 1, done
    assert "differ: what training call 1 adds to variable Variable: " in done.stdout
