"""The contents of a file of variables in any format: arrays by name, and owners of slots."""

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
    # A centered RMSProp has three slots.
    "RMSProp": (("velocity", "momentum"), ("velocity", "average_gradient", "momentum")),
}

# The kinds of variables that do not belong to another variable.
BETA_POWERS = ("beta1_power", "beta2_power")
GLOBAL_STEP = "global_step"
ITERATIONS = "iterations"
SETTING = "setting"  # Such as the learning rate; the value of the new program is kept.


@dataclass(frozen=True)
class Slot:
    """A slot of an optimizer for one variable."""

    variable: str
    role: str  # The optimizer and the name of the slot, such as "Adam m".
    factor: float = 1.0  # The value divided by the one that TensorFlow 1.x would store.


@dataclass(frozen=True)
class Stored:
    """The variables of one file, or of one prefix of a checkpoint."""

    path: str
    values: Values
    slots: Mapping[str, Slot] = field(default_factory=dict)
    # The kinds, as above, of the variables that do not belong to another variable, by name.
    counters: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)  # Keys in the file, by name.

    def slot(self, variable: str, role: str) -> str | None:
        """Returns the name of a variable's slot, or None."""
        values = [
            n for n, slot in self.slots.items() if (slot.variable, slot.role) == (variable, role)
        ]
        return values[0] if len(values) == 1 else None

    def counter(self, kind: str) -> str | None:
        """Returns the name of the only variable of a kind; None if there are none or several."""
        names = [name for name, known in self.counters.items() if known == kind]
        return names[0] if len(names) == 1 else None


def owner(name: str, variables: Container[str]) -> str:
    """Returns the variable to which a slot belongs, by the slot's name, or "".

    TensorFlow 1.x calls a slot of `w` "w/Adam", or "train/w/Adam" in the optimizer's scope.
    """
    variable = name.rpartition("/")[0]
    while variable and variable not in variables:
        variable = variable.partition("/")[2]
    return variable
