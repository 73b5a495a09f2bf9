"""Checkpoints of `tf.train.Saver`, keyed by the names of variables.

TensorFlow 1.x names the slots of a variable `w` by the optimizer: `w/Adam` and `w/Adam_1`.
"""

from __future__ import annotations

import collections

from compat.checkpoint.formats import stored
from compat.checkpoint.formats.stored import Slot, Stored, Values


def known(path: str, values: Values) -> Stored:
    """Returns the variables of a checkpoint, and the roles of its slots and counters."""
    groups: dict[tuple[str, str, str], dict[int, str]] = collections.defaultdict(dict)
    counters = {}
    for name in values:
        rest, _, last = name.rpartition("/")
        if last in stored.BETA_POWERS or name == stored.GLOBAL_STEP:
            counters[name] = last
        optimizer, _, number = last.partition("_")
        variable = stored.owner(name, values)
        if optimizer in stored.ROLES and variable and values[variable].shape == values[name].shape:
            groups[optimizer, variable, rest][int(number) if number.isdigit() else 0] = name
    slots = {}
    for (optimizer, variable, _), names in groups.items():
        for roles in stored.ROLES[optimizer]:
            if sorted(names) == list(range(len(roles))):
                for index, role in enumerate(roles):
                    slots[names[index]] = Slot(variable, f"{optimizer} {role}")
    return Stored(path, values, slots, counters)
