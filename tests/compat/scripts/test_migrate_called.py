"""`python -m compat migrate` of functions that build and run, called where a device is set."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# As recommenders do that also run alone: what builds and runs is called with and without a device.
SCRIPT = """\
import numpy as np
import compat.v1 as tf

flags = tf.app.flags
flags.DEFINE_string("job_name", "", "ps or worker, or none for this process alone")
FLAGS = flags.FLAGS

CLASS

def main(server=None, is_chief=True):
    rows = np.random.RandomState(1).rand(16, 4).astype(np.float32)
    BUILD
    hooks = [tf.train.StopAtStepHook(last_step=200)]
    RUN

cluster = {"ps": ["localhost:2222"], "worker": ["localhost:2223"]}
if FLAGS.job_name:
    cluster = tf.train.ClusterSpec(cluster)
    server = tf.SERVER(cluster, job_name=FLAGS.job_name, task_index=0)
    if FLAGS.job_name == "ps":
        server.join()
    setter = tf.train.replica_device_setter(cluster=cluster)
    DEVICE
        main(server)
else:
    main()
"""
BUILD = """w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    print("on", w.device)
    loss = tf.reduce_mean(tf.square(tf.matmul(rows, w) - rows.sum(1, keepdims=True)))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss, global_step=step)"""
RUN = """with tf.train.MonitoredTrainingSession(
            master=server.target if server else "", is_chief=is_chief, hooks=hooks) as sess:
        while not sess.should_stop():
            _, value = sess.run([model.train, model.loss])
    print("loss %.3f" % value)"""
# A class that cannot be written as plain statements, since a method returns in two places.
CLASS = f"""\
class Model:
    def __init__(self, rows, reuse):
        with self._scope(reuse):
            self._build(rows)

    def _scope(self, reuse):
        if reuse:
            return tf.variable_scope("model", reuse=True)
        return tf.variable_scope("model")

    def _build(self, rows):
        {BUILD.replace(chr(10), chr(10) + "    ")}
        self.train, self.loss = train, loss

def fit(server, is_chief, hooks, net):
    {RUN.replace("model.", "net.")}
"""
KINDS = {
    "SERVER": ("train.Server", "distribute.Server"),
    "DEVICE": ("with tf.device(setter):", "device = tf.device(setter)\n    with device:"),
    "CLASS": ("", CLASS),
    "BUILD": (BUILD, "model = Model(rows, False)"),
    "RUN": (RUN.replace("model.", ""), "fit(server, is_chief, hooks, model)"),
}


def script(kind: int) -> str:
    """Returns the script: all in a function, or in a class and a function that is given it."""
    text = SCRIPT
    for word, texts in KINDS.items():
        text = text.replace(word, texts[kind])
    return text


@pytest.mark.parametrize("kind", [0, 1])
def test_variables_are_where_the_device_says_in_which_it_is_called(
    run_pair: Callable[[str, str], str], run_step: Any, runtime: str, kind: int
) -> None:
    new = rewriting.migrate("old.py", script(kind))
    assert not new.remarks
    assert "with compat.device(None):\n        build = compat.step(build, [])" in new.text
    said = run_pair(new.text, runtime)
    assert "on /job:ps" in said and said.splitlines()[-1] == "loss 0.000", said
    alone = run_step(new.text, runtime)
    assert alone.out.splitlines()[-1] == "loss 0.000", alone


# A session in a branch, which builds more, and begins its metrics again for each epoch.
AGAIN = """\
import numpy as np
import compat.v1 as tf

def main(target=""):
    rows = np.random.RandomState(1).rand(16, 4).astype(np.float32)
    w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(rows, w) - rows.sum(1, keepdims=True)))
    tf.summary.scalar("loss", loss)
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
    mean, update = tf.metrics.mean(loss)
    if target:
        with tf.train.MonitoredTrainingSession(master=target) as sess:
            sess.run(train)
    else:
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(tf.local_variables_initializer())
            merged = tf.summary.merge_all()
            saver = tf.train.Saver(tf.global_variables(), max_to_keep=2)
            for epoch in range(3):
                for _ in range(4):
                    sess.run([train, update])
                print("mean %.4f" % sess.run(mean))
                sess.run(tf.local_variables_initializer())
            saver.save(sess, "./kept")

main()
"""


def test_a_session_in_a_branch_initializes_again_where_it_did(run_step: Any, tmp_path: Any) -> None:
    new = rewriting.migrate("old.py", AGAIN)
    (remark,) = new.remarks
    assert "local_variables_initializer initializes variables again, so it works" in remark[1]
    assert new.text.count("merge_all()") == new.text.count("local_variables_initializer()") == 1
    assert "compat.Supervisor().managed_session()" in new.text
    outs = [run_step(AGAIN, "legacy").out, run_step(new.text, "legacy").out]
    assert outs[0].split() == outs[1].split(), outs
    assert (tmp_path / "kept.index").exists()


# An object that runs what it has: a session is opened by it, or it is given one.
OBJECT = """\
import compat.v1 as tf

def show(sess, tensor):
    print(sess.run(tensor))

class Model(Base):
    def __init__(self):
        self.loss = tf.square(tf.Variable(1.0))
        self.train = tf.train.GradientDescentOptimizer(0.1).minimize(self.loss)

    def run(self, sess):
        return sess.run(self.train)

    def fit(self):
        OPENS

model = Model()
model.fit()
"""
SESSION = "sess = tf.Session()\nsess.run(tf.global_variables_initializer())\n"


def test_what_an_object_runs_is_refused_where_no_step_is_left() -> None:
    opened = OBJECT.replace("OPENS", SESSION.replace("\n", "\n        "))
    with pytest.raises(UserError, match="since Model builds what is trained, and fit makes the s"):
        rewriting.migrate("old.py", opened)
    given = OBJECT.replace("OPENS", "pass").replace("model.fit()", f"{SESSION}model.run(sess)")
    with pytest.raises(UserError, match="since no call of its session fetches what it builds by a"):
        rewriting.migrate("old.py", given)


def test_it_is_initialized_once_where_a_function_above_runs_a_session() -> None:
    text = OBJECT.replace("OPENS", "pass").replace("model.fit()", f"{SESSION}sess.run(model.train)")
    assert "initializer" not in rewriting.migrate("old.py", text).text
