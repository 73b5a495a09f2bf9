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
    """What the user says.

    Attributes:
      renames: the old name of a variable, by its new one.
      fresh: patterns of new names that take nothing from the old checkpoint.
      cast: patterns of new names whose dtype may differ.
    """

    renames: Mapping[str, str] = field(default_factory=dict)
    fresh: Sequence[str] = ()
    cast: Sequence[str] = ()


@dataclass(frozen=True)
class Match:
    """One variable of the program, and where its value comes from.

    Attributes:
      name: of the variable.
      source: its old name; None if nothing is taken from the old checkpoint.
      value: what it is to be, or None if that is open.
      how: why so, or why not.
      alike: what else is in the old checkpoint, unused, of the same shape and dtype.
    """

    name: str
    source: str | None
    value: np.ndarray | None
    how: str
    alike: Sequence[str] = ()


def dtype_name(value: np.ndarray) -> str:
    """Returns the name of a dtype as TensorFlow says it, such as "float32" or "string"."""
    return "string" if value.dtype.kind in "SUO" else value.dtype.name


def match(old: Values, like: Values, told: Told) -> list[Match]:
    """Finds a value for each variable of a program.

    Args:
      old: the values to bring over, by their old names.
      like: those of the program's own checkpoint, by name.
      told: what is not to be seen from the names.

    Returns:
      A match for each of `like`, by name; `value` is None where there is none.

    Raises:
      UserError: what was told names a variable that is not there, or one twice.
    """
    _check(old, like, told)
    found = [_match(name, old, like[name], told) for name in sorted(like)]
    left = unused(old, found)
    return [
        m if m.value is not None else replace(m, alike=_alike(like[m.name], old, left))
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
            return Match(name, None, None, "it has a value that is not finite in --like")
        return Match(name, None, expected, "fresh")
    source = told.renames.get(name, name)
    if name not in told.renames and name in told.renames.values():
        return Match(name, None, None, "the one of this name is renamed")
    if source not in old:
        return Match(name, None, None, "no such name")
    value = old[source]
    subject = "it" if source == name else source
    if value.shape != expected.shape:
        shapes = f"shape {list(value.shape)}, expected {list(expected.shape)}"
        return Match(name, None, None, f"{subject} has {shapes}")
    if not _is_finite(value):
        return Match(name, None, None, f"{subject} has a value that is not finite")
    how = "same name" if source == name else "renamed"
    if dtype_name(value) == dtype_name(expected):
        return Match(name, source, value, how)
    dtypes = f"{dtype_name(value)}, expected {dtype_name(expected)}"
    if not _matches(name, told.cast):
        return Match(name, None, None, f"{subject} is {dtypes} (--cast={name} converts it)")
    converted = _cast(value, expected.dtype)
    if converted is None:
        return Match(name, None, None, f"{subject} is {dtypes}, and would not stay the same number")
    return Match(name, source, converted, f"{how}, cast from {dtype_name(value)}")


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _alike(expected: np.ndarray, old: Values, names: Sequence[str]) -> list[str]:
    kind = (expected.shape, dtype_name(expected))
    same = [name for name in names if (old[name].shape, dtype_name(old[name])) == kind]
    return [name for name in same if _is_finite(old[name])]


def _is_finite(value: np.ndarray) -> bool:
    return not np.issubdtype(value.dtype, np.inexact) or bool(np.isfinite(value).all())


def _cast(value: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Returns the same numbers as another dtype; None if they change by more than rounding."""
    if not (np.issubdtype(value.dtype, np.number) and np.issubdtype(dtype, np.number)):
        return None
    with np.errstate(all="ignore"):
        converted = value.astype(dtype)
    rounds = np.issubdtype(value.dtype, np.floating) and np.issubdtype(dtype, np.floating)
    same = _is_finite(converted) if rounds else bool((converted == value).all())
    return converted if same else None
