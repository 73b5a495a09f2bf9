"""Prints the matched and unmatched variables, as a table and as JSON."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Sequence

from compat.checkpoint.formats.stored import Stored, Values
from compat.checkpoint.matching import Match, dtype_name, unused
from compat.errors import UserError, reason_of
from compat.tracking.files import beside

_MOST_HINTS = 5


def print_variables(stored: Stored) -> None:
    """Prints the variables of a checkpoint."""
    rows = _rows(stored.values, sorted(stored.values))
    print_table([("VARIABLE", "SHAPE", "DTYPE"), *rows])
    print(f"\n{stored.path} holds {len(stored.values)} variables")


def print_matches(old: Stored, like: Stored, matches: Sequence[Match]) -> None:
    """Prints the origin of each variable of `like`, and the unused variables of `old`."""
    rows = _rows(like.values, [match.name for match in matches])
    table = [(*row, match.source or "-", _how(match)) for row, match in zip(rows, matches)]
    print_table([("VARIABLE", "SHAPE", "DTYPE", "FROM", "HOW"), *table])
    remaining = unused(old, matches)
    if remaining:
        print(f"\nunused variables of {old.path}:")
        print_table(_rows(old.values, remaining))


def of_variables(stored: Stored) -> dict[str, Any]:
    """Returns the variables of a checkpoint as values of JSON."""
    variables = [_entry(stored.values, name) for name in sorted(stored.values)]
    return {"old": stored.path, "variables": variables}


def of_matches(old: Stored, like: Stored, matches: Sequence[Match]) -> dict[str, Any]:
    """Returns what `print_matches` prints, as values of JSON."""
    variables = [
        {
            **_entry(like.values, match.name),
            "from": match.source,
            "how": match.how,
            "matched": match.value is not None,
            "candidates": list(match.alike),
        }
        for match in matches
    ]
    return {
        "old": old.path,
        "like": like.path,
        "variables": variables,
        "unused": [_entry(old.values, name) for name in unused(old, matches)],
        "matched": sum(entry["matched"] for entry in variables),
        "missing": sum(not entry["matched"] for entry in variables),
    }


def check(path: str | None) -> None:
    """Raises `UserError` if a report cannot be written at `path`, unless that is None."""
    folder = os.path.dirname(os.path.abspath(path or ""))
    if path is not None and (os.path.isdir(path) or not os.path.isdir(folder)):
        raise UserError(f"--report={path} cannot be written; name a file in a folder that exists")


def write(path: str | None, content: Mapping[str, Any]) -> None:
    """Writes a report as a JSON file, unless `path` is None; replaces an earlier one."""
    if path is None:
        return
    try:
        with beside(path) as unfinished:
            unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"--report={path} cannot be written ({reason_of(error)}); name a file in a folder "
            "that exists"
        ) from None


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows in columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


def _how(match: Match) -> str:
    if not match.alike:
        return match.how
    names = ", ".join(match.alike[:_MOST_HINTS])
    more = len(match.alike) - _MOST_HINTS
    return f"{match.how}; candidates: {names}{f' and {more} more' if more > 0 else ''}"


def _rows(values: Values, names: Sequence[str]) -> list[tuple[str, ...]]:
    return [(name, str(list(values[name].shape)), dtype_name(values[name])) for name in names]


def _entry(values: Values, name: str) -> dict[str, Any]:
    shape = list(values[name].shape)
    return {"name": name, "shape": shape, "dtype": dtype_name(values[name])}
