"""`python -m compat migrate` of scripts that fetch lists, tuples and dicts of tensors."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
STRUCTURES = """\
import numpy as np
import compat.v1 as tf

def main():
    with tf.device(None):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        weights = tf.Variable(tf.ones([2, 1]))
        output = tf.matmul(x, weights)
        loss = tf.reduce_mean(tf.square(output))
        train_op = tf.train.GradientDescentOptimizer(0.125).minimize(loss, global_step=step)
        both = [train_op, {"loss": loss, "output": output}]
    sv = tf.train.Supervisor()
    with sv.managed_session() as sess:
        fetches = {"loss": loss, "ops": train_op, "step": step}
        feed = {x: np.ones([1, 2])}
        found = sess.run(fetches, feed_dict=feed)
        print(found["step"], found["loss"], found["ops"])
        _, (value, row) = sess.run([train_op, (loss, output)], feed)
        print(value, row.shape)
        found = sess.run(both, feed)
        print(found[0], found[1]["loss"])
        with sess.as_default():
            print(loss.eval(feed))

main()
"""


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", text).text


def test_a_structure_is_a_value_of_the_step() -> None:
    found = rewritten(STRUCTURES)
    assert '            "loss_output": (loss, output),\n' in found
    structure = '{"loss": loss, "ops": train_op, "step": step}'
    assert f'            "loss_train_op_global_step": {structure},\n' in found
    assert '        found = sess.run(train, *feed)["loss_train_op_global_step"]\n' in found
    assert "fetches =" not in found
    named = STRUCTURES.replace("loss.eval(feed)", "loss.eval(feed_dict=feed, session=sess)")
    assert rewritten(named) == found


def test_what_is_assigned_again_stays_as_it_is() -> None:
    """And the dictionary that its call is fed remains one."""
    found = rewritten(
        STRUCTURES.replace("        feed =", "        fetches = dict(fetches)\n        feed =")
    )
    assert "found = sess.run(fetches, feed_dict=feed)" in found
    assert "        feed = {x: np.ones([1, 2])}\n" in found
    assert "        x = tf.TensorSpec(" in found


def test_it_fetches_the_same_on_either_runtime(
    run_step: Callable[[str, str], Any], runtime: str
) -> None:
    ran = run_step(rewritten(STRUCTURES), runtime)
    assert ran.code == 0, ran.out
    assert ran.out.splitlines()[-4:] == ["1 4.0 None", "1.0 (1, 1)", "None 0.25", "0.0625"]


def test_a_call_that_feeds_too_little_stops_where_it_is() -> None:
    """As in the old program, which had trained until there."""
    text = STRUCTURES.replace("(weights)", "(keep * weights)").replace(
        "        output = tf.matmul(x, weights)",
        '        keep = tf.placeholder(tf.float32, name="keep")\n'
        "        with tf.name_scope(None):\n"
        "            output = keep * tf.matmul(x, weights)\n"
        "            norm = tf.norm(weights)",
    )
    text = text.replace("np.ones([1, 2])}", "np.ones([1, 2]), keep: 1.0}")
    call = "        print(sess.run(NAME, {x: np.ones([1, 2])}))\n\nmain()"
    lacking = rewriting.migrate("old.py", text.replace("\nmain()", call.replace("NAME", "output")))
    assert 'sess.run(build.select("output", inputs=["x"]), np.ones([1, 2]))' in lacking.text
    assert [why for _, why in lacking.remarks] == [
        "output needs keep, which is not fed here, so training stops here, as it did; feed it"
    ]
    enough = rewriting.migrate("old.py", text.replace("\nmain()", call.replace("NAME", "norm")))
    assert 'compute_norm = build.select("norm", inputs=["x"])' in enough.text
    assert not enough.remarks


def test_placeholders_of_one_line_are_inputs_each() -> None:
    line = '        x = tf.placeholder(tf.float32, [None, 2], name="x")\n'
    both = (
        '        x, y = tf.placeholder(tf.float32, [None, 2], name="x"), tf.placeholder("float")\n'
    )
    assert "def build(x, y):" in rewritten(STRUCTURES.replace(line, both))
