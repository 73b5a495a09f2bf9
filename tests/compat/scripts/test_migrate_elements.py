"""`python -m compat migrate`: arrays of one element as numbers, and columns changed in place."""

from __future__ import annotations

import pytest

from compat.scripts.migrating import migration
from compat.scripts.reading import conversion
from compat.scripts.rules.catalog import RULES

pytest.importorskip("asttokens")
pytestmark = pytest.mark.once
# A tutorial that many scripts have been made of, with variables of the shape [1].
ELEMENTS = """
import tensorflow as tf
x = tf.placeholder("float")
w = tf.get_variable("w", [1], initializer=tf.zeros_initializer())
b = tf.Variable(tf.ones((1, 1)), name="b")
total = tf.Variable(tf.zeros([2]))
loss = cost(tf.multiply(x, w), x)
mean = tf.reduce_mean(tf.multiply(x, w))
def cost(one, other):
    return tf.square(one - other)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    a, l, m, t = sess.run([w, loss, mean, total], {x: 2.0})
    print("%.1f %f %f %s" % (a, l, m, t))
    print("%s of %d" % ("b", sess.run(b)), float(b.eval()))
    a = 3
"""


def migrated(text: str) -> migration.Migrated:
    return migration.migrate(conversion.from_text(text, "old.py"), RULES)


def test_elements_of_arrays_are_numbers_where_these_are_wanted() -> None:
    found = migrated(ELEMENTS.replace("    a = 3\n", "")).text
    assert 'print("%.1f %f %f %s" % (a.item(), l.item(), m, t))' in found
    assert 'print("%s of %d" % ("b", sess.run(b).item()), float(b.eval().item()))' in found
    assert "(a, l.item(), m, t)" in migrated(ELEMENTS).text


FRAMES = """
import tensorflow as tf, pandas
train, test = [pandas.read_csv(name) for name in names]
for frame in (train, test):
    frame['a'].replace(  # one
        "x", 'y', inplace=True)
    frame['b'][frame['b'] == "it's"] += 1
    frame.c.clip(inplace = True, lower = 1)
    print(frame.iloc[0])
    frame.values[frame.values > 1] = 0
    kept["a"][0] = 3
others["e"].fillna(0, inplace=True), others["e"].fillna(0)
others["e"].append(0, inplace=True)
print(table.columns)
table.rows[table.rows > 1] = 0
"""


def test_columns_are_changed_in_their_frame() -> None:
    found = migrated(FRAMES)
    changed = """
    frame['a'] = frame['a'].replace(  # one
        "x", 'y')
    frame.loc[frame['b'] == "it's", "b"] += 1
    frame.c = frame.c.clip(lower = 1)
"""
    assert changed in found.text
    assert found.text.endswith(FRAMES[FRAMES.index("    print") :])
    assert found.remarks == []


@pytest.mark.parametrize(
    ("unclear", "by_hand"),
    [
        ("frame.c[2] = 3", 'frame.loc[rows, "c"] = ... or frame.iloc[...] by positions'),
        ("frame['d'][:2] += 3", 'frame.loc[rows, "d"] = ... or frame.iloc[...] by positions'),
        (
            "others['e'].fillna(0, inplace=True)",
            "others['e'] = others['e'].fillna(...), without inplace=True",
        ),
    ],
)
def test_columns_are_left_where_one_is_unclear(unclear: str, by_hand: str) -> None:
    found = migrated(f"{FRAMES}{unclear}\n")
    assert "columns" in found.counts
    whys = [why.partition("write ")[2] for _, why in found.remarks]
    assert whys[1:] == [
        'frame.loc[rows, "b"] = ... or frame.iloc[...] by positions',
        "frame.c = frame.c.clip(...), without inplace=True",
        by_hand,
    ]
    lines = FRAMES.splitlines()[3:]
    assert [line for line in found.text.splitlines() if line in lines] == lines
