"""`python -m compat migrate`: arrays of one element in the place of numbers."""

from __future__ import annotations

import pytest

from compat.scripts.migrating import migration
from compat.scripts.rules.catalog import RULES
from compat.scripts.source import conversion

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
