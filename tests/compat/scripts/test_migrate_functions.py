"""`python -m compat migrate --to=experiment` of scripts whose work is in functions and modules."""

from __future__ import annotations

import re

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
HEAD = "import compat.v1 as tf\nimport numpy as np\n"
NET = """
x = tf.placeholder(tf.float32, [None, 4], name="x")
y = tf.placeholder(tf.float32, [None, 1], name="y")
w = tf.Variable(tf.zeros([4, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
"""
LOOP = """
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(20):
        batch = np.random.rand(8, 4)
        session.run(train, {x: batch, y: batch.sum(1, keepdims=True)})
"""
# As in TensorFlow's own tutorial with summaries.
SUMMARIES = """
from compat.v1.examples.tutorials.mnist import input_data

def main():
    mnist = input_data.read_data_sets(FLAGS.folder, one_hot=True)
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.float32, [None, 10])
    keep = tf.placeholder(tf.float32)
    logits = tf.layers.dense(tf.nn.dropout(x, keep), 10)
    loss = tf.losses.softmax_cross_entropy(y, logits)
    train = tf.train.AdamOptimizer().minimize(loss)

    def feed(training):
        if training or FLAGS.fake:
            xs, ys = mnist.train.next_batch(100)
            k = FLAGS.dropout
        else:
            xs, ys = mnist.test.images, mnist.test.labels
            k = 1.0
        return {x: xs, y: ys, keep: k}

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for i in range(50):
            if i % 10 == 0:
                print(session.run(loss, feed_dict=feed(False)))
            else:
                session.run(train, feed_dict=feed(True))

tf.flags.DEFINE_string("folder", "data", "Where it is.")
tf.flags.DEFINE_float("dropout", 0.9, "Keep probability.")
tf.flags.DEFINE_boolean("fake", False, "Fake data.")
FLAGS = tf.flags.FLAGS
main()
"""


def written(text: str) -> str:
    """Returns the new program without the comments at its end, and without blank lines."""
    made = writing.migrate("old.py", HEAD + text).text.partition("# compat note")[0]
    return re.sub(r"\n\s*\n", "\n", made)


@pytest.mark.parametrize(
    "drawn", ["np.random.rand(8, 4)", "xs[np.random.randint(0, 9, 8)]", "one()"]
)
def test_each_update_has_what_is_drawn_where_it_is_fed(drawn: str) -> None:
    draws = "xs = np.ones([9, 4])\ndef one():\n    return np.random.rand(8, 4)\n"
    loop = LOOP.replace("{x: batch, y: batch.sum(1, keepdims=True)}", f"{{x: {drawn}, y: ones}}")
    new = written(draws + "ones = np.ones([8, 1])" + NET + loop.replace("batch = ", "pass  # "))
    assert (
        f"""
        for _ in range(self.settings.max_steps):
            made = {{
                "x": np.asarray({drawn}, "float32"),"""
        in new
    )
    assert "np.random.seed(self.settings.seed)" in new


def test_a_flag_of_rows_is_a_setting_of_its_own() -> None:
    """Also one that has the name of a setting of all experiments: of examples in a batch."""
    flags = "tf.flags.DEFINE_integer('{}', 8, 'Rows.')\nF = tf.flags.FLAGS"
    of_rows, renamed = (
        written(flags.format(name) + NET + LOOP.replace("rand(8", f"rand(F.{name}"))
        for name in ("rows", "batch_size")
    )
    assert 'rows: int = setting(8, "Rows.")\n' in of_rows
    assert "        F = self.settings\n" in of_rows
    assert "batch_size: int = 1\n" in renamed
    assert "# compat 1: its flag batch_size is the setting rows: an example is a batch" in renamed
    assert renamed.partition("# compat 1")[0].rstrip() == of_rows.rstrip()


def test_what_needs_an_input_that_training_does_not_feed_is_no_output() -> None:
    net = NET + "other = tf.placeholder(tf.float32, [9, 4])\nothers = tf.matmul(other, w)\n"
    loop = f"{LOOP}    print(session.run(others, {{other: np.ones([9, 4])}}))\n"
    new = written(net + "ones = tf.ones([1])" + loop)
    assert "        return loss\n" in new and "tf.matmul(other, w)\n" not in new
    assert "# compat 1: others, which it fetches, needs what its training does not feed" in new


def test_a_function_that_feeds_is_followed() -> None:
    """Also into the branch that its argument takes, and to what it feeds in an evaluation."""
    made = written(SUMMARIES)
    assert "        mnist = input_data.read_data_sets(FLAGS.folder, one_hot=True)\n" in made
    assert '                "y": np.asarray(part.labels, "float32"),\n' in made
    assert "tf.constant(FLAGS.dropout if training else 1.0, tf.float32), [])\n" in made
    assert "        batch_size: int = 100\n" in made


RANDOM = """
    for step in range(20):
        batch = np.random.rand(8, 4)
"""
FEED = "{x: batch, y: batch.sum(1, keepdims=True)}"
# The loops of programs, what they feed, and lines of the data that they become.
LOOPS = {
    "parts of arrays": (
        """
    data, target = np.ones([64, 4]), np.ones([64, 1])
    epochs, size = 3, 8
    for epoch in range(epochs):
        order = np.random.permutation(64)
        for i in range(64 // size):
            part = order[i * size:(i + 1) * size]
""",
        "{x: data[part], y: target[part]}",
        ["epochs: int = 3", "batch_size: int = 8", '    "x": np.asarray(data, "float32"),'],
    ),
    "each epoch has its own": (
        """
    for epoch in range(3):
        for i in range(8):
            batch = np.random.rand(8, 4)
""",
        FEED,
        ["epochs: int = 1", "for epoch in range(3):", "    for i in range(8):"],
    ),
    "all calls feed the same": (
        """
    batch = np.ones([8, 4])
    for step in range(20):
        print(step)
""",
        FEED,
        ["max_steps: int | None = 20", '    "x": np.asarray(batch, "float32")[None],'],
    ),
    "a function that is called as the data are": (
        """
    for batch in batches(9):
        print(len(batch))
""",
        FEED,
        ["batches_2 = []", "for batch in batches(9):", "epochs: int = 1"],
    ),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_loops_become_data(kind: str) -> None:
    loop, feed, lines = LOOPS[kind]
    head, _, call = LOOP.partition(RANDOM)
    inner = loop.rstrip("\n").rpartition("\n")[2]
    call = inner[: len(inner) - len(inner.lstrip())] + call.lstrip().replace(FEED, feed)
    helper = "\ndef batches(n):\n    for _ in range(n):\n        yield np.ones([8, 4])\n"
    made = written(helper + NET + head + loop + call)
    for line in lines:
        assert f"        {line}\n" in made, made


def test_what_runs_before_the_update_runs_with_the_loss() -> None:
    minimize = "train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)"
    waits = f"more = [tf.no_op()]\nwith tf.control_dependencies(more):\n    {minimize}"
    assert """
        more = [tf.no_op()]
        if training:
            with tf.control_dependencies(more):
                loss = tf.identity(loss)
        return loss
""" in written(NET.replace(minimize, waits) + LOOP)


REFUSED = {
    "its batches are fed by a function": ("{x: batch, y: batch.sum(1, keepdims=True)}", "dict(a)"),
    "what it feeds depends on state, see its loop": (
        "session.run(train, {x: batch",
        "_, state = session.run([train, loss], {x: batch + state",
    ),
    "what it feeds is computed by its session": (
        "np.random.rand(8, 4)",
        "session.run(loss, {x: [[1] * 4], y: [[1]]})",
    ),
    "it feeds w": ("{x: batch", "{w: batch"),
    "its session initializes an iterator": ("NET", "it = tf.data.make_initializable_iterator(a)"),
    "its data set ends; call repeat\\(\\) on it": ("NET", "it = tf.data.make_one_shot_iterator(a)"),
    "its batches come from queues of input": ("NET", "queue = tf.FIFOQueue(1, tf.float32)"),
    "its data, loss or optimizer needs secret": (
        "np.random.rand(8, 4)",
        "helper()",
    ),
    "its data, loss or optimizer needs xs, which is made among the lines that build the graph: "
    "move it before them": (
        "loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))",
        "xs = np.ones([8, w.shape[0]])\nloss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_it_refuses(why: str) -> None:
    old, new = REFUSED[why]
    helper = "\ndef helper():\n    return secret\n\ndef other():\n    secret = 1\n"
    text = f"{helper}\n{new}\n{NET}{LOOP}" if old == "NET" else helper + NET + LOOP
    text = text.replace("= np.random.rand", "= 0 * xs + np.random.rand") if "xs" in why else text
    with pytest.raises(UserError, match=f"cannot become an Experiment, since {why};"):
        written(text.replace(old, new))


def test_a_name_that_is_made_in_two_steps_is_refused_where_more_than_the_loss_needs_it() -> None:
    words = "\nwords = list('abc')\nwords = list(set(words))\nplaces = dict(enumerate(words))\n"
    grams = "grams = []\nfor place in places:\n    grams.append(place)\n"
    text = NET.replace("- y)", "- y * len(words))") + LOOP.replace("8, 4)", "8, 4) * len(grams)")
    with pytest.raises(UserError, match="its data, loss or optimizer needs words;"):
        written(words + grams + text)


def test_loops_that_fill_what_is_fed_stay() -> None:
    loops = """
rows, more, sizes = [], [], {}
for i in range(8):
    rows.append([i] * 4)
more.extend(rows)
with open("sizes") as file:
    for line in file:
        sizes[line] = 1
"""
    made = written(
        loops + NET + LOOP.replace("np.random.rand(8, 4)", "np.array(more) * len(sizes)")
    )
    for line in ("    rows.append([i] * 4)", "more.extend(rows)", "        sizes[line] = 1"):
        assert f"\n{line}\n" in made, made


def test_what_is_fed_is_no_part_of_the_graph() -> None:
    """Also where it is in front of the session."""
    start = "\nbatch = np.ones([8, 4])\nfeed = {x: batch, y: batch}\n"
    text = NET + start + LOOP.replace("{x: batch, y: batch.sum(1, keepdims=True)}", "feed")
    made = rewriting.migrate("old.py", HEAD + text).text
    assert made.index("return {") < made.index("feed = (batch, batch)")
