"""Checkpoints of `tf.train.Saver`, keyed by the names of variables.

An optimizer of TensorFlow 1.x names the slots of `w` by its own name: `w/Adam` and `w/Adam_1`.
"""

from __future__ import annotations

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
    slots: dict[str, Slot] = {}
    for optimizer, choices in _ROLES.items():
        for variable in values:
            names = _slots(variable, optimizer, values)
            for roles in choices:
                if len(roles) == len(names):
                    slots.update(
                        (name, Slot(variable, f"{optimizer} {role}"))
                        for name, role in zip(names, roles)
                    )
    counters = {}
    for name in values:
        last = name.rpartition("/")[2]
        if last in stored.BETA_POWERS or name == stored.GLOBAL_STEP:
            counters[name] = last
    return Stored(path, values, slots, counters)


def _slots(variable: str, optimizer: str, values: Values) -> list[str]:
    """Returns the slots of a variable, as far as their numbers follow each other."""
    names: list[str] = []
    while True:
        name = f"{variable}/{optimizer}" + (f"_{len(names)}" if names else "")
        if name not in values or values[name].shape != values[variable].shape:
            return names
        names.append(name)
