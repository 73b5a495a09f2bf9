"""Matches the variables of an old checkpoint to those of a program, by name or by rename.

The slots of an optimizer follow their variables by rules. Nothing is guessed: shapes and dtypes are
only used for hints, and to explain why two variables do not match.
"""

from __future__ import annotations

import fnmatch
import math
from dataclasses import dataclass, field, replace
from typing import Mapping, NamedTuple, Sequence

import numpy as np

from compat.checkpoint.formats import stored
from compat.checkpoint.formats.stored import BETA_POWERS, Slot, Stored, Values
from compat.errors import UserError

_CLOSE = 1e-3  # Relative tolerance of a power of beta in float32.


@dataclass(frozen=True)
class MatchOptions:
    """The options of the user for a conversion."""

    renames: Mapping[str, str] = field(default_factory=dict)  # Old names by new names.
    fresh: Sequence[str] = ()  # Patterns of new names that take nothing from the old checkpoint.
    cast: Sequence[str] = ()  # Patterns of new names whose dtype may differ.
    betas: tuple[float, float] = (0.9, 0.999)  # Adam's, from whose powers updates are counted.


@dataclass(frozen=True)
class Match:
    """One variable of the program, and where its value comes from."""

    name: str
    how: str  # The reason for the match, or for its absence.
    value: np.ndarray | None = None  # None without a match.
    source: str | None = None  # The old name; None if the value is not from the old checkpoint.
    alike: Sequence[str] = ()  # Unused old variables of the same shape and dtype.


def dtype_name(value: np.ndarray) -> str:
    """Returns TensorFlow's name of an array's dtype, such as "float32" or "string"."""
    return "string" if value.dtype.kind in "SUO" else value.dtype.name


def match(old: Stored, like: Stored, options: MatchOptions) -> list[Match]:
    """Finds an old value for each variable of the program's own checkpoint, `like`, by name."""
    _check(old.values, like.values, options)
    matches = [_match(name, old, like, options) for name in sorted(like.values)]
    remaining = unused(old, matches)
    return [
        m
        if m.value is not None
        else replace(
            m, alike=[n for n in remaining if _is_alike(old.values[n], like.values[m.name])]
        )
        for m in matches
    ]


def unused(old: Stored, matches: Sequence[Match]) -> list[str]:
    """Returns the old names whose values no match uses."""
    taken = {m.source for m in matches if m.value is not None}
    # One count of updates replaces both of Adam's powers, so neither is unused.
    counts = {n for n, k in old.counters.items() if k in BETA_POWERS and taken & set(old.counters)}
    return sorted(set(old.values) - taken - counts)


def _check(old: Values, like: Values, options: MatchOptions) -> None:
    for target, source in sorted(options.renames.items()):
        argument = f"--rename={source}:{target}"
        if source not in old:
            raise UserError(
                f"{argument} names {source}, which is not in the old checkpoint; give one of its "
                "names, which are listed if OLD is given alone"
            )
        if target not in like:
            raise UserError(
                f"{argument} names {target}, which is not in the checkpoint of --like; give one of "
                "its names"
            )
        if _matches(target, options.fresh):
            raise UserError(f"{argument} and --fresh both determine {target}; give one of them")
    for option, patterns in (("fresh", options.fresh), ("cast", options.cast)):
        for pattern in patterns:
            if not any(_matches(name, [pattern]) for name in like):
                raise UserError(
                    f"--{option}={pattern} fits no variable of the checkpoint of --like; give one "
                    "of its names, or a pattern such as '*/Adam'"
                )


def _match(name: str, old: Stored, like: Stored, options: MatchOptions) -> Match:
    expected = like.values[name]
    if _matches(name, options.fresh):
        if not _is_finite(expected):
            return Match(name, "it has a value that is not finite in --like")
        return Match(name, "fresh", expected)
    source = options.renames.get(name, name)
    if name not in options.renames and name in options.renames.values():
        return Match(name, "the one of this name is renamed")
    if source not in old.values or _is_of_another(name, old, like, options):
        return _by_rule(name, old, like, options)
    how = "same name" if source == name else "renamed"
    return _taken(name, how, old.values[source], source, expected, options)


def _is_of_another(name: str, old: Stored, like: Stored, options: MatchOptions) -> bool:
    """Whether the old slot of this name belongs to another variable, as after a rename."""
    slot, same = like.slots.get(name), old.slots.get(name)
    if slot is None or same is None or name in options.renames:
        return False
    variable = options.renames.get(slot.variable, slot.variable)
    return (variable, slot.role) != (same.variable, same.role)


def _by_rule(name: str, old: Stored, like: Stored, options: MatchOptions) -> Match:
    """Finds the value of a slot by its variable, and the value of a counter by its kind."""
    slot, expected = like.slots.get(name), like.values[name]
    if slot is None:
        computed = counter_value(old, like, name, options.betas)
        value = None if computed.value is None else computed.value.astype(expected.dtype)
    else:
        computed = slot_value(old, options.renames.get(slot.variable, slot.variable), slot)
        value = computed.value
    if value is None:
        return Match(name, computed.how)
    return _taken(name, computed.how, value, computed.source, expected, options)


def _taken(
    name: str,
    how: str,
    value: np.ndarray,
    source: str | None,
    expected: np.ndarray,
    options: MatchOptions,
) -> Match:
    """Matches a value to a variable if it has the shape and the dtype, or may be cast."""
    subject = "it" if source in (name, None) else source
    if value.shape != expected.shape:
        shapes = f"shape {list(value.shape)}, expected {list(expected.shape)}"
        return Match(name, f"{subject} has {shapes}")
    if not _is_finite(value):
        return Match(name, f"{subject} has a value that is not finite")
    if dtype_name(value) == dtype_name(expected):
        return Match(name, how, value, source)
    dtypes = f"{dtype_name(value)}, expected {dtype_name(expected)}"
    if not _matches(name, options.cast):
        return Match(name, f"{subject} is {dtypes} (--cast={name} converts it)")
    converted = cast(value, expected.dtype)
    if converted is None:
        return Match(name, f"{subject} is {dtypes}, and would not stay the same number")
    return Match(name, f"{how}, cast from {dtype_name(value)}", converted, source)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _is_alike(value: np.ndarray, expected: np.ndarray) -> bool:
    same = value.shape == expected.shape and dtype_name(value) == dtype_name(expected)
    return same and _is_finite(value)


def _is_finite(value: np.ndarray) -> bool:
    return not np.issubdtype(value.dtype, np.inexact) or bool(np.isfinite(value).all())


def cast(value: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Casts numbers to another dtype; returns None if they change by more than rounding."""
    if not (np.issubdtype(value.dtype, np.number) and np.issubdtype(dtype, np.number)):
        return None
    with np.errstate(all="ignore"):
        converted = value.astype(dtype)
    rounds = np.issubdtype(value.dtype, np.floating) and np.issubdtype(dtype, np.floating)
    same = _is_finite(converted) if rounds else bool((converted == value).all())
    return converted if same else None


class Found(NamedTuple):
    """A value with its origin, or the reason why there is none."""

    how: str
    value: np.ndarray | None = None
    source: str | None = None


def slot_value(old: Stored, variable: str, wanted: Slot) -> Found:
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


def counter_value(old: Stored, like: Stored, name: str, betas: tuple[float, float]) -> Found:
    """Finds the value of a counter or setting of `like`, such as its global step."""
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
        # The power of the first beta underflows much earlier.
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
