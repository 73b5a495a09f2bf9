"""The rules by which the state of an optimizer goes from one program to another.

A slot goes to the slot that means the same of the same variable: `w/Adam` of TensorFlow 1.x is the
momentum of Keras' Adam. Its values are the same but for the momentum of SGD, to which Keras adds
the learning rate. Adam of TensorFlow 1.x counts its updates by powers of beta, Keras by a number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from compat.checkpoint.formats import stored
from compat.checkpoint.formats.stored import Slot, Stored

_CLOSE = 1e-3  # Of a power of beta in float32, relative.


class Found(NamedTuple):
    """A value, and where it comes from; or why there is none."""

    how: str
    value: np.ndarray | None = None
    source: str | None = None


def slot(old: Stored, variable: str, wanted: Slot) -> Found:
    """Returns the value of `variable`'s slot in `old` that has the wanted role."""
    name = old.slot(variable, wanted.role)
    if name is None:
        return Found(f"no such name, and no slot {wanted.role} of {variable}")
    times = wanted.factor / old.slots[name].factor
    how = f"slot {wanted.role} of {variable}"
    if times == 1.0:
        return Found(how, old.values[name], name)
    value = old.values[name]
    return Found(f"{how}, times {times:g}", (value * times).astype(value.dtype), name)


def counter(old: Stored, like: Stored, name: str, betas: tuple[float, float]) -> Found:
    """Returns the value of a variable of `like` that belongs to no other variable."""
    kind = like.counters.get(name)
    if kind == stored.SETTING:
        return Found("setting of --like", like.values[name])
    if kind is None:
        return Found("no such name")
    same = old.counter(kind)
    if same is not None:
        return Found(f"the {kind} of the optimizer", old.values[same], same)
    if kind == stored.ITERATIONS:
        return _updates(old, betas)
    taken = old.counter(stored.ITERATIONS)
    if taken is None:
        return Found("no such name")
    updates = int(old.values[taken])
    if kind == stored.GLOBAL_STEP:
        return Found("number of updates", np.asarray(updates), taken)
    beta = betas[stored.BETA_POWERS.index(kind)]
    return Found(
        f"{beta:g} to the power of {updates + 1}", np.asarray(beta ** (updates + 1)), taken
    )


def _updates(old: Stored, betas: tuple[float, float]) -> Found:
    """Returns how often the optimizer of `old` has updated the variables."""
    names = [old.counter(kind) for kind in stored.BETA_POWERS]
    first, second = (None if n is None else float(old.values[n]) for n in names)
    if first is not None and second is not None and second > np.finfo(np.float32).tiny:
        count = round(math.log(second) / math.log(betas[1])) - 1
        powers = [beta ** (count + 1) for beta in betas]
        # The first one underflows much earlier.
        if math.isclose(powers[1], second, rel_tol=_CLOSE) and math.isclose(
            powers[0], first, rel_tol=_CLOSE, abs_tol=float(np.finfo(np.float32).tiny)
        ):
            return Found("number of updates", np.asarray(count), names[1])
        return Found(
            f"no such name, and {names[0]} and {names[1]} are not the same power of {betas[0]:g} "
            f"and {betas[1]:g} (--betas=BETA1,BETA2 gives others)"
        )
    name = old.counter(stored.GLOBAL_STEP)
    if name is not None:
        return Found("number of updates", old.values[name], name)
    return Found("no such name, and nothing counts the updates")
