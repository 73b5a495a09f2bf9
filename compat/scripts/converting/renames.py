"""Reads the old and new names of variables, from flags and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

from compat.errors import UserError


class Rename(NamedTuple):
    """One pair of names, or a rule: `*` in both stands for the same text."""

    given: str  # As the user gave it.
    old: str
    new: str


def parse(flags: Sequence[str], path: str | None) -> list[Rename]:
    """Returns the pairs of the flags and of a file, which may be None."""
    pairs = [(f"--rename={pair}", pair) for pair in flags]
    if path:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", "not UTF-8 text")
            raise UserError(
                f"--renames={path} cannot be read ({reason}); name a text file with "
                "OLD_NAME:NEW_NAME in each line"
            ) from None
        for number, line in enumerate(lines, 1):
            pair = line.partition("#")[0].strip()
            if pair:
                pairs.append((f"{path}:{number}: {pair}", pair))
    renames: dict[str, Rename] = {}
    for given, pair in pairs:
        # The last colon: some programs saved their variables as "name:0".
        old, _, new = (part.strip() for part in pair.rpartition(":"))
        if not (old and new):
            raise UserError(f"{given} is not a pair of names; give OLD_NAME:NEW_NAME")
        if old.count("*") != new.count("*"):
            raise UserError(f"{given} has * in one name only; give as many in the other")
        if renames.setdefault(new, Rename(given, old, new)).old != old:
            raise UserError(f"{given} names {new} twice; give each new name once")
    return list(renames.values())


def expand(renames: Sequence[Rename], old: Sequence[str], new: Sequence[str]) -> Mapping[str, str]:
    """Returns the old names by the new ones; a pair comes before a rule, a rule before the next."""
    found = {rename.new: rename.old for rename in renames if "*" not in rename.old}
    for rename in renames:
        if "*" not in rename.old:
            continue
        pattern = "(.+)".join(map(re.escape, rename.old.split("*")))
        matches = filter(None, (re.fullmatch(pattern, name) for name in old))
        targets = {_filled(rename.new, match.groups()): match.group() for match in matches}
        fitting = {target: name for target, name in targets.items() if target in new}
        if not fitting:
            raise UserError(
                f"{rename.given} fits no variable of the old checkpoint and one of --like; give "
                "names that both have, with * for the part that is the same"
            )
        taken = set(found.values())
        for target, name in fitting.items():
            if name not in taken:
                found.setdefault(target, name)
    return found


def _filled(name: str, texts: Sequence[str]) -> str:
    parts = name.split("*")
    return "".join(a + b for a, b in zip(parts, [*texts, ""]))
