"""Checkpoints of `tf.train.Saver`, keyed by the names of variables.

An optimizer of TensorFlow 1.x names the slots of `w` by its own name: `w/Adam` and `w/Adam_1`.
"""

from __future__ import annotations

import collections
from typing import Sequence

from compat.checkpoint.formats import stored
from compat.checkpoint.formats.stored import Slot, Stored, Values

# The roles of an optimizer's slots, in the order in which it creates them.
_ROLES: dict[str, tuple[Sequence[str], ...]] = {
    "Adadelta": (("accumulated_grad", "accumulated_delta_var"),),
    "Adagrad": (("accumulator",),),
    "Adam": (("m", "v"),),
    "Ftrl": (("accumulator", "linear"),),
    "Momentum": (("momentum",),),
    # Centered, it has three.
    "RMSProp": (("velocity", "momentum"), ("velocity", "average_gradient", "momentum")),
}


def known(path: str, values: Values) -> Stored:
    """Returns the variables of a checkpoint, with what its slots and counters are."""
    groups: dict[tuple[str, str, str], dict[int, str]] = collections.defaultdict(dict)
    counters = {}
    for name in values:
        rest, _, last = name.rpartition("/")
        if last in stored.BETA_POWERS or name == stored.GLOBAL_STEP:
            counters[name] = last
        optimizer, _, number = last.partition("_")
        variable = _owner(rest, values)
        if optimizer in _ROLES and variable and values[variable].shape == values[name].shape:
            groups[optimizer, variable, rest][int(number) if number.isdigit() else 0] = name
    slots = {}
    for (optimizer, variable, _), names in groups.items():
        for roles in _ROLES[optimizer]:
            if sorted(names) == list(range(len(roles))):
                for index, role in enumerate(roles):
                    slots[names[index]] = Slot(variable, f"{optimizer} {role}")
    return Stored(path, values, slots, counters)


def _owner(name: str, values: Values) -> str:
    """Returns the variable of a slot's name, which may begin with the optimizer's scope."""
    while name and name not in values:
        name = name.partition("/")[2]
    return name
