"""`python -m compat migrate --to=compat`: an old script as a step that either runtime runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.command import main
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "migrate-steps.md").read_text(encoding="utf-8")
OLD, NEW = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
REMARK, _ = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
HEAD = "import compat.v1 as tf\n"
BLOCK = """
def main():
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [None, 2])
        loss = tf.reduce_sum(x * tf.Variable(1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.train.MonitoredTrainingSession() as session:
        session.run(train, {x: [[1, 2]]})
"""


def rewritten(text: str) -> str:
    return rewriting.migrate("old.py", HEAD + text).text


def test_it_does_what_the_page_shows(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(OLD, encoding="utf-8")
    assert main(["--to=compat", str(path)]) == 0
    new = tmp_path / "train_compat.py"
    assert new.read_text(encoding="utf-8") == NEW
    again = rewriting.migrate("new.py", NEW)
    assert (again.text, again.is_changed) == (NEW, False)


def test_the_program_trains_on_either_runtime(
    runtime: str, run_pair: Callable[[str, str], str]
) -> None:
    """As the page says, with a parameter server."""
    said = run_pair(NEW, runtime)
    first, last = re.findall(r"step 1, loss (\S+)|at the end (\S+)", said)
    assert (first[0], last[1]) == ("3.555", "0.165")


def test_values_are_taken_where_they_are_used() -> None:
    text = BLOCK.replace(
        "session.run(train, {x: [[1, 2]]})",
        """\
print(session.run(loss, {x: [[1, 2]]}))
        _, a = session.run([train, loss], feed_dict={x: (1 + 1) * [[1, 2]]})
        b, c = session.run([train, loss], feed_dict={x: [[1, 2]]})
        found = session.run([train, loss], {x: [[1, 2]]})""",
    )
    body = rewritten(text).partition("as session:\n")[2]
    assert (
        body
        == """\
        print(session.run(compute_loss, [[1, 2]])["loss"])
        a = session.run(train_2, (1 + 1) * [[1, 2]])["loss"]
        values = session.run(train_2, [[1, 2]])
        b, c = values.get("train"), values["loss"]
        found = list(map(session.run(train_2, [[1, 2]]).get, ["train", "loss"]))
"""
    )


def test_what_is_used_otherwise_has_a_remark() -> None:
    text = BLOCK.replace(
        "        session.run(", "        tf.train.start(loss)\n        session.run("
    )
    found = rewriting.migrate("old.py", HEAD + text)
    assert "    loss = None\n    def build(x):\n        nonlocal loss\n" in found.text
    (remark,) = found.remarks
    expected = REMARK.strip().replace("update_count", "loss")
    assert f"# compat 1: {remark[1]}" == expected
    assert expected in found.text


@pytest.mark.parametrize(
    "row", ["tf.data.Dataset.range(2).make_one_shot_iterator().get_next()", "tf.constant([1, 2])"]
)
def test_what_is_made_behind_the_graph_has_a_remark(row: str) -> None:
    session = "    with tf.train.MonitoredTrainingSession"
    text = BLOCK.replace(session, f"    row = {row}\n{session}")
    text = text.replace("[[1, 2]]", "[session.run(row)]")
    assert "# compat 1: row is built outside of the graph, so it works with" in rewritten(text)


def test_an_assignment_behind_the_session_has_a_remark() -> None:
    more = "step = tf.Variable(0)\n        loss ="
    text = BLOCK.replace("loss =", more, 1) + "        step.assign(3).eval(session=session)\n"
    assert "# compat 1: this adds to the graph, which is complete once" in rewritten(text)


def test_a_parameter_may_be_changed_in_the_block() -> None:
    text = BLOCK.replace("main():", "main(rate):").replace(
        "        loss =", "        rate = rate / 2\n        loss ="
    )
    assert "    def build(x):\n        nonlocal rate\n        rate = rate / 2\n" in rewritten(text)


def test_arguments_that_say_the_default_are_dropped() -> None:
    text = BLOCK.replace(
        "    with tf.train.MonitoredTrainingSession()",
        """\
        init = tf.global_variables_initializer()
    part = tf.train.Scaffold(init_op=init, init_feed_dict={x: [[0, 0]]}, saver=None)
    with tf.train.MonitoredTrainingSession(scaffold=part)""",
    )
    found = rewritten(text)
    assert "part = compat.Scaffold(saver=None)\n" in found
    assert "init" not in found.partition("def main")[2]


def test_a_graph_of_its_own_is_the_default_one() -> None:
    found = rewritten(BLOCK.replace('tf.device("/cpu:0")', "tf.Graph().as_default()"))
    assert "    with compat.device(None):\n        build = compat.step(build, " in found


def test_what_is_made_under_a_condition_stays_in_the_graph() -> None:
    text = BLOCK.replace(
        "    with tf.train",
        "        if x is None:\n            more = tf.no_op()\n    with tf.train",
    )
    text = text.replace("        session.run(", "        session.run(more)\n        session.run(")
    found = rewritten(text)
    assert "        session.run(more)\n" in found
    assert '"more"' not in found


def test_what_both_branches_make_is_returned() -> None:
    old = "        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)\n"
    one = old.replace("        ", "            ", 1)
    new = f"        if SLOW:\n{one.replace('0.1', '0.01')}        else:\n{one}"
    text = rewritten(BLOCK.replace(old, new))
    assert '"train": train' in text and "nonlocal" not in text


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("x = tf.placeholder", "y = x = tf.placeholder", "placeholder is not assigned to a name"),
        (
            "as session:",
            "as session:\n        print(x)",
            "placeholder x is used beside session.run",
        ),
        ("        loss =", "        return\n        loss =", "it leaves its function while"),
        ("    with tf.device", "    x = 1\n    with tf.device", "placeholder x is assigned again"),
        ("[None, 2])", "[None, 2], name=1, dtype=2, a=3)", "only tf.placeholder"),
        (
            "as session:",
            "as session:\n        tf.Session()",
            "tf.Session is not assigned to a name",
        ),
        ("{x: [[1, 2]]}", "{x: session.run(loss)}", "is within another one"),
        ("TrainingSession", "Training", "it has no session"),
        (
            "def main():",
            'cluster = tf.train.ClusterSpec({"worker": ["localhost:2222"]})\ndef main():',
            "its cluster has workers alone, .*: add a job ps",
        ),
        (
            "def main():",
            'flag("--runtime")\ndef main():',
            "old.py:3: it has a flag `runtime` of its own",
        ),
    ],
)
def test_what_it_refuses(old: str, new: str, why: str) -> None:
    text = BLOCK.replace(old, new, 1)
    assert text != BLOCK
    with pytest.raises(UserError, match=why):
        rewritten(text)


PLAIN = """
def inputs(size):
    # Of the data.
    a = tf.placeholder(tf.float32, [None, size])
    return a

def fed(holder):
    return {holder: [[1, 2]]}

def shown(session, value, holder):
    print("%.2f" % session.run(value, feed_dict=fed(holder)))

def main():
    sess = tf.InteractiveSession()
    x = inputs(2)
    text = \"\"\"of
two lines\"\"\"
    loss = tf.reduce_sum(x * tf.Variable(1.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    saver = tf.train.Saver()
    init = tf.global_variables_initializer()
    sess.run(init)
    train.run({x: [[1, 2]]})
    twice = loss * 2
    print("%.1f" % twice.eval(feed_dict={x: [[1, 2]]}))
    shown(sess, loss, x)
    print(saver.save(sess, "saved"))
    sess.close()

main()
"""


def test_a_plain_session_is_a_supervisors() -> None:
    """What runs and builds by itself is gathered, and functions take what they took."""
    found = rewritten(PLAIN)
    assert (
        found[found.index("def main") :]
        == '''\
def main():
    # Of the data.
    def build(x):
        text = """of
two lines"""
        loss = tf.reduce_sum(x * tf.Variable(1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        twice = loss * 2
        return {
            "train": train,
            "twice": twice,
            "loss": loss,
        }

    with compat.device(None):
        x = tf.TensorSpec([None, 2], tf.float32, "Placeholder")
        build = compat.step(build, [x])
        loss = build["loss"]
        train_2 = build.select("train")
        compute_twice = build.select("twice")
        saver = compat.Saver()
    sess = compat.Supervisor().prepare_or_wait_for_session()
    sess.run(train_2, [[1, 2]])
    print("%.1f" % sess.run(compute_twice, [[1, 2]])["twice"])
    shown(sess, loss, x)
    print(saver.save(sess, "saved"))
    sess.close()

main()
'''
    )


def test_it_trains_on_either_runtime(run_step: Callable[[str, str], Any], runtime: str) -> None:
    ran = run_step(rewritten(PLAIN), runtime)
    assert (ran.code, ran.out.split()[-3:]) == (0, ["4.2", "2.10", "saved"]), ran.out


def test_a_refused_script_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("import tensorflow as tf\nprint(tf.zeros([1]))\n", encoding="utf-8")
    why = "nothing in it is trained by an optimizer"
    for level in ("compat", "experiment"):
        with pytest.raises(UserError, match=f"old.py:1: .* since {why}; use --to=v1, or write"):
            main([f"--to={level}", str(path)])
    with pytest.raises(UserError, match="--to=compat takes a script"):
        main(["--to=compat", str(tmp_path), "--output=new"])
    assert [file.name for file in tmp_path.iterdir()] == ["old.py"]


def test_parameter_servers_that_wait_in_a_session_are_refused() -> None:
    waiting = '    if job == "ps":\n        tf.Session().run(done.dequeue())\n'
    with pytest.raises(UserError, match="old.py:5: its parameter servers wait .* server.join()"):
        rewritten(BLOCK.replace("    with tf.device", f"{waiting}    with tf.device", 1))


def test_a_script_in_today_s_names_is_refused_with_what_to_write() -> None:
    today = BLOCK.replace("tf.", "tf.compat.v1.")
    with pytest.raises(UserError, match="write `tf.` for `tf.compat.v1.` in it"):
        rewriting.migrate("old.py", f"import tensorflow as tf\n{today}")
