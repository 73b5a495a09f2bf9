"""Matches the variables of an old checkpoint to those of a program, by name or by rename.

Nothing is guessed: shapes and dtypes serve as hints, and say why two variables are not the same.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field, replace
from typing import Mapping, Sequence

import numpy as np

from compat.errors import UserError

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Told:
    """What the user says."""

    renames: Mapping[str, str] = field(default_factory=dict)  # Old names, by new ones.
    fresh: Sequence[str] = ()  # Patterns of new names that take nothing from the old checkpoint.
    cast: Sequence[str] = ()  # Patterns of new names whose dtype may differ.


@dataclass(frozen=True)
class Match:
    """One variable of the program, and where its value comes from."""

    name: str
    how: str  # Why so, or why not.
    value: np.ndarray | None = None  # None if that is open.
    source: str | None = None  # Its old name; None if nothing is taken from the old checkpoint.
    alike: Sequence[str] = ()  # What else is there, unused, of the same shape and dtype.


def dtype_name(value: np.ndarray) -> str:
    """Returns the name of a dtype as TensorFlow says it, such as "float32" or "string"."""
    return "string" if value.dtype.kind in "SUO" else value.dtype.name


def match(old: Values, like: Values, told: Told) -> list[Match]:
    """Finds an old value for each variable of the program's own checkpoint, `like`, by name."""
    _check(old, like, told)
    found = [_match(name, old, like[name], told) for name in sorted(like)]
    left = unused(old, found)
    return [
        m
        if m.value is not None
        else replace(m, alike=[name for name in left if _is_alike(old[name], like[m.name])])
        for m in found
    ]


def unused(old: Values, matches: Sequence[Match]) -> list[str]:
    """Returns the old names of which nothing was taken."""
    return sorted(set(old) - {m.source for m in matches if m.value is not None})


def _check(old: Values, like: Values, told: Told) -> None:
    for target, source in sorted(told.renames.items()):
        given = f"--rename={source}:{target}"
        if source not in old:
            raise UserError(
                f"{given} names {source}, which the old checkpoint has not; give one of its own "
                "names, which are listed if OLD is given alone"
            )
        if target not in like:
            raise UserError(
                f"{given} names {target}, which the checkpoint of --like has not; give one of its "
                "own names"
            )
        if _matches(target, told.fresh):
            raise UserError(f"{given} and --fresh both say what {target} is; give one of them")
    for option, patterns in (("fresh", told.fresh), ("cast", told.cast)):
        for pattern in patterns:
            if not any(_matches(name, [pattern]) for name in like):
                raise UserError(
                    f"--{option}={pattern} fits no variable of the checkpoint of --like; give one "
                    "of its names, or a pattern such as '*/Adam'"
                )


def _match(name: str, old: Values, expected: np.ndarray, told: Told) -> Match:
    if _matches(name, told.fresh):
        if not _is_finite(expected):
            return Match(name, "it has a value that is not finite in --like")
        return Match(name, "fresh", expected)
    source = told.renames.get(name, name)
    if name not in told.renames and name in told.renames.values():
        return Match(name, "the one of this name is renamed")
    if source not in old:
        return Match(name, "no such name")
    value = old[source]
    subject = "it" if source == name else source
    if value.shape != expected.shape:
        shapes = f"shape {list(value.shape)}, expected {list(expected.shape)}"
        return Match(name, f"{subject} has {shapes}")
    if not _is_finite(value):
        return Match(name, f"{subject} has a value that is not finite")
    how = "same name" if source == name else "renamed"
    if dtype_name(value) == dtype_name(expected):
        return Match(name, how, value, source)
    dtypes = f"{dtype_name(value)}, expected {dtype_name(expected)}"
    if not _matches(name, told.cast):
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
    """Returns the same numbers as another dtype; None if they change by more than rounding."""
    if not (np.issubdtype(value.dtype, np.number) and np.issubdtype(dtype, np.number)):
        return None
    with np.errstate(all="ignore"):
        converted = value.astype(dtype)
    rounds = np.issubdtype(value.dtype, np.floating) and np.issubdtype(dtype, np.floating)
    same = _is_finite(converted) if rounds else bool((converted == value).all())
    return converted if same else None
