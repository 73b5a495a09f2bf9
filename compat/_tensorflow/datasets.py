"""Adds the iterators of TensorFlow 1.x to today's datasets.

An installed package imports today's TensorFlow. So the datasets that it returns to a program of 1.x
lack the methods and attributes that only `tf.compat.v1.data.Dataset` still has.
"""

from __future__ import annotations

from typing import Any

from compat._tensorflow.release import tf, tf1

_ITERATORS = ("make_one_shot_iterator", "make_initializable_iterator")
_ATTRIBUTES = ("output_classes", "output_shapes", "output_types")


def give_iterators() -> None:
    """Adds the iterators and properties of 1.x to `tf.data.Dataset`; further calls do nothing."""
    kind = tf.data.Dataset
    for name in _ITERATORS:
        if not hasattr(kind, name):
            setattr(kind, name, _method(name))
    for name in _ATTRIBUTES:
        if not hasattr(kind, name):
            setattr(kind, name, property(getattr(tf1.data, f"get_{name}")))


def _method(name: str) -> Any:
    function = getattr(tf1.data, name)

    def make(self: Any, shared_name: Any = None) -> Any:
        return function(self, shared_name) if shared_name else function(self)

    make.__name__ = name
    return make
