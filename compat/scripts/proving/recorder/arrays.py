"""Stores arrays, including those of strings, by name in a file that every NumPy can read."""

from __future__ import absolute_import

import json
import os

import numpy


def save(path, arrays):
    """Writes arrays by their names, atomically."""
    names = sorted(arrays)
    stored = {"names": numpy.frombuffer(json.dumps(names).encode("utf-8"), numpy.uint8)}
    for number, name in enumerate(names):
        array = numpy.asarray(arrays[name])
        if array.dtype.kind in "OSU":
            texts = [_encoded(text) for text in array.ravel().tolist()]
            stored["bytes%d" % number] = numpy.frombuffer(b"".join(texts), numpy.uint8)
            stored["ends%d" % number] = numpy.cumsum([0] + [len(text) for text in texts])
            stored["shape%d" % number] = numpy.array(array.shape, numpy.int64)
        else:
            stored["array%d" % number] = array
    with open(path + ".tmp", "wb") as file:
        numpy.savez(file, **stored)
    os.rename(path + ".tmp", path)


def load(path):
    """Returns the arrays in a file by their names; empty if there is no file."""
    if not os.path.exists(path):
        return {}
    arrays = {}
    with numpy.load(path) as stored:
        names = json.loads(stored["names"].tobytes().decode("utf-8"))
        for number, name in enumerate(names):
            if "array%d" % number in stored.files:
                arrays[name] = stored["array%d" % number]
                continue
            whole, ends = stored["bytes%d" % number].tobytes(), stored["ends%d" % number]
            texts = numpy.empty(len(ends) - 1, object)
            texts[:] = [whole[start:end] for start, end in zip(ends, ends[1:])]
            arrays[name] = texts.reshape(tuple(stored["shape%d" % number]))
    return arrays


def _encoded(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


def paired(theirs, ours, stored, takes=None):
    """Finds the array of the other run for each name in this run: by equal names, or in order.

    Args:
      theirs: Names in the other run, in order.
      ours: Names in this run, in order.
      stored: The arrays of the other run, by its names.
      takes: A function that returns whether a name of this run allows the shape of an array; such
        arrays are preferred. None if the shape does not matter.

    Returns:
      The arrays by their names in this run, and a list of the names without an array.
    """
    same = [name for name in ours if name in theirs and name in stored]
    # Default names, such as "Placeholder_1", only number the placeholders: pair them in order.
    if len(theirs) == len(ours):
        same = [name for name in same if not name.startswith("Placeholder")]
    paired_arrays = dict((name, stored[name]) for name in same)
    unpaired = [name for name in theirs if name not in paired_arrays and name in stored]
    rest = [name for name in ours if name not in paired_arrays]
    if len(unpaired) != len(rest):
        return paired_arrays, rest
    for name in rest:
        fitting = [other for other in unpaired if takes is None or takes(name, stored[other])]
        other = (fitting or unpaired)[0]
        unpaired.remove(other)
        paired_arrays[name] = stored[other]
    return paired_arrays, []
