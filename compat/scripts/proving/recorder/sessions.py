"""Provides `Call`, which fetches and feeds tensors by name, in every release of TensorFlow."""

from __future__ import absolute_import

import numpy

from . import graphs


class Call(object):
    """A call of `Session.run`.

    Attributes:
      fetches: Names of the tensors.
      targets: Names of the operations that run without a result.
      feeds: Arrays by the name of the tensor.
    """

    def __init__(self, session, run, fetches, targets, feeds):
        self.session, self.graph, self._run = session, session.graph, run
        # Releases before 1.2 pass names.
        self._by_name = any(
            isinstance(item, (bytes, str)) for item in list(fetches) + list(targets)
        )
        self.fetches = [self._tensor(item).name for item in fetches]
        self.targets = [self._operation(item).name for item in targets]
        self.feeds = dict((self._tensor(key).name, feeds[key]) for key in feeds)

    def key(self):
        """Returns a key that is equal for calls with the same fetches, targets and feeds."""
        return tuple(self.fetches), tuple(self.targets), frozenset(self.feeds), self.graph.version

    def dtypes(self):
        """Returns NumPy's types of the fetches, in their order."""
        tensors = [self.graph.get_tensor_by_name(name) for name in self.fetches]
        return [numpy.dtype(tensor.dtype.base_dtype.as_numpy_dtype) for tensor in tensors]

    def operations(self):
        """Returns the operations that the call runs, in the order of their creation."""
        ends = [self.graph.get_tensor_by_name(name).op for name in self.fetches]
        ends += [self.graph.get_operation_by_name(name) for name in self.targets]
        return graphs.closure(ends, self.feeds)

    def run(self, fetches, targets=(), feeds=None, options=None, metadata=None):
        """Runs a call; returns the values of the tensors `fetches`. All arguments use names."""
        by_name = self._by_name
        tensors = [self.graph.get_tensor_by_name(name) for name in fetches]
        operations = [self.graph.get_operation_by_name(name) for name in targets]
        feed_dict = {}
        for name, value in (feeds or {}).items():
            tensor = self.graph.get_tensor_by_name(name)
            feed_dict[_text(name) if by_name else _key(tensor)] = value
        return self._run(
            self.session,
            None,
            [_text(op.name) for op in operations] if by_name else operations,
            [_text(tensor.name) for tensor in tensors] if by_name else tensors,
            feed_dict,
            options,
            metadata,
        )

    def values(self, names, feeds=None):
        """Returns the values of tensors by name, without those that cannot be computed."""
        feeds = feeds or {}
        # Fed tensors need no fetch.
        values = dict((name, feeds[name]) for name in names if name in feeds)
        names = [name for name in names if name not in values]
        try:
            return dict(values, **dict(zip(names, self.run(names, (), feeds))))
        except Exception:
            if len(names) <= 1:
                return values
        half = len(names) // 2
        values.update(self.values(names[:half], feeds))
        values.update(self.values(names[half:], feeds))
        return values

    def converted(self, values):
        """Returns `values`, arrays by tensor name, with numbers converted to the tensors' types."""
        converted = {}
        for name, value in values.items():
            dtype = self.graph.get_tensor_by_name(name).dtype.base_dtype.as_numpy_dtype
            is_number = value.dtype.kind in "fiu" and numpy.dtype(dtype).kind in "fiu"
            converted[name] = value.astype(dtype) if is_number else value
        return converted

    def takes(self, name, value):
        """Returns whether the shape of an array is valid for a tensor."""
        return self.graph.get_tensor_by_name(name).shape.is_compatible_with(value.shape)

    def _tensor(self, item):
        item = item.deref() if hasattr(item, "deref") else item
        if isinstance(item, bytes) and not isinstance(item, str):
            item = item.decode("utf-8")
        return self.graph.as_graph_element(item, allow_operation=False)

    def _operation(self, item):
        if isinstance(item, bytes) and not isinstance(item, str):
            item = item.decode("utf-8")
        return self.graph.as_graph_element(item, allow_tensor=False)


def _key(tensor):
    """Returns the key of a tensor in a dictionary of feeds; since TensorFlow 2.1, its reference."""
    return tensor.ref() if hasattr(tensor, "ref") else tensor


def _text(name):
    return name if isinstance(name, bytes) else name.encode("utf-8")


def read_variables(call, names, only=None):
    """Returns the values of initialized variables by name; see `translated` for `names`."""
    readable = dict(
        (variable.tensor.name, name)
        for name, variable in graphs.variables(call.graph).items()
        if only is None or name in only
    )
    values_by_name = call.values(sorted(readable))
    return dict(
        (translated(readable[tensor], names), value) for tensor, value in values_by_name.items()
    )


def write_variables(call, values, names):
    """Sets variables by name; skips those that the graph lacks."""
    known = dict((translated(name, names), v) for name, v in graphs.variables(call.graph).items())
    waiting = sorted(set(values) & set(known))
    while waiting:
        feeds, targets, later = {}, [], []
        for name in waiting:
            variable = known[name]
            # If two variables have the same initial value, set the second one in another call.
            if variable.value.name in feeds:
                later.append(name)
                continue
            # The global step may be an integer in one of the runs only.
            kind = variable.value.dtype.base_dtype.as_numpy_dtype
            feeds[variable.value.name] = numpy.asarray(values[name], kind)
            targets.append(variable.setter.name)
        call.run((), targets, feeds)
        waiting = later


def translated(name, names):
    """Returns the other run's name of a variable, or of its slot in an optimizer."""
    for base in sorted(names, key=len, reverse=True):
        if base in name:
            return name.replace(base, names[base])
    return name


def _alike(here, there):
    """Pairs names that are equal except for scopes that one of the two runs adds."""
    pairs = {}
    for name in here:
        near = [other for other in there if _is_near(name, other)]
        back = [other_name for other_name in here if near and _is_near(other_name, near[0])]
        if len(near) == len(back) == 1:
            pairs[name] = near[0]
    return pairs


def _is_near(name, other):
    return _is_within(name, other) or _is_within(other, name)


def _is_within(short, long):
    """Returns whether the scopes of one name are among those of another, in the same order."""
    scopes = iter(long.split("/"))
    return all(part in scopes for part in short.split("/"))


def matched(own, values, learned):
    """Matches trainable variables with those of the other run: by name, then in order.

    Args:
      own: The shapes of this run's trainable variables by name, in the order of their creation.
      values: The values of the other run's variables by name.
      learned: Names of the other run's trainable variables, in the order of their creation.

    Returns:
      The other run's name of each variable that has another name here; and a description of how
      the variables differ, "" if they match.
    """
    here = [name for name in own if name not in learned]
    there = [name for name in learned if name not in own]
    if len(here) != len(there):
        side, missing = ("A", there) if len(there) > len(here) else ("B", here)
        return {}, "%s has %d more: %s" % (
            side,
            abs(len(here) - len(there)),
            ", ".join(missing[:5]),
        )
    names = _alike(here, there)
    taken = set(names.values())
    unmatched = [name for name in there if name not in taken]
    names.update(zip([name for name in here if name not in names], unmatched))
    for name, shape in own.items():
        other = names.get(name, name)
        if other not in values:
            continue
        stored_shape = list(values[other].shape)
        if len(shape) != len(stored_shape) or any(
            size is not None and size != length for size, length in zip(shape, stored_shape)
        ):
            return {}, "%s has shape %s in A, %s has shape %s in B" % (
                other,
                stored_shape,
                name,
                shape,
            )
    return names, ""
