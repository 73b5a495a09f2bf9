"""What a file of variables holds in any format: arrays by name, and what the slots belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Container, Mapping, Sequence

import numpy as np

Values = Mapping[str, np.ndarray]

# The roles of an optimizer's slots, in the order in which TensorFlow 1.x creates them.
ROLES: Mapping[str, Sequence[Sequence[str]]] = {
    "Adadelta": (("accumulated_grad", "accumulated_delta_var"),),
    "Adagrad": (("accumulator",),),
    "Adam": (("m", "v"),),
    "Ftrl": (("accumulator", "linear"),),
    "Momentum": (("momentum",),),
    # Centered, it has three.
    "RMSProp": (("velocity", "momentum"), ("velocity", "average_gradient", "momentum")),
}

# What a variable that belongs to no other one counts or sets.
BETA_POWERS = ("beta1_power", "beta2_power")
GLOBAL_STEP = "global_step"
ITERATIONS = "iterations"
SETTING = "setting"  # Such as the learning rate: the new program's own is kept.


@dataclass(frozen=True)
class Slot:
    """What an optimizer keeps for one variable."""

    variable: str
    role: str  # Such as "Adam m": the optimizer, and which one of its slots.
    factor: float = 1.0  # The value is this times that of TensorFlow 1.x's optimizer.


@dataclass(frozen=True)
class Stored:
    """The variables of one file, or of one prefix of a checkpoint."""

    path: str
    values: Values
    slots: Mapping[str, Slot] = field(default_factory=dict)
    counters: Mapping[str, str] = field(default_factory=dict)  # Kinds, as above, by name.
    keys: Mapping[str, str] = field(default_factory=dict)  # Keys in the file, by name.

    def slot(self, variable: str, role: str) -> str | None:
        """Returns the name of a variable's slot, or None."""
        found = [
            n for n, slot in self.slots.items() if (slot.variable, slot.role) == (variable, role)
        ]
        return found[0] if len(found) == 1 else None

    def counter(self, kind: str) -> str | None:
        """Returns the name of the only counter of its kind, or None."""
        found = [name for name, known in self.counters.items() if known == kind]
        return found[0] if len(found) == 1 else None


def owner(name: str, variables: Container[str]) -> str:
    """Returns the variable to which a slot belongs by its name, or "".

    TensorFlow 1.x names the slot of `w` `w/Adam`, or `train/w/Adam` in the optimizer's scope.
    """
    variable = name.rpartition("/")[0]
    while variable and variable not in variables:
        variable = variable.partition("/")[2]
    return variable
