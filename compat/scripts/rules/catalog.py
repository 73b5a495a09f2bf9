"""Provides all rules, in the order of application, and the options of commands that select some."""

from __future__ import annotations

import argparse
from typing import Sequence

from compat.errors import UserError
from compat.scripts.rules import (
    arrays,
    calls,
    frames,
    imports,
    modules,
    names,
    packages,
    places,
    python2,
)
from compat.scripts.rules.rule import Rule

_FILES = (imports, names, modules, calls, python2, packages, arrays, frames, places)
# Rules without a migrated form are last. `compat.v1` takes their uses as they are, or they depend
# on the machine.
RULES: Sequence[Rule] = sorted(
    (rule for file in _FILES for rule in file.RULES), key=lambda rule: not rule.after
)
UNREADABLE_RULE = Rule("unreadable", "", "files that are neither Python nor notebooks", "x = (")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select rules."""
    add = parser.add_argument
    add("--only", metavar="ID,..", help="these rules only")
    add("--skip", metavar="ID,..", help="all rules but these")
    add("--list-rules", action="store_true", help="list the rules, and what each is about")


def selected(options: argparse.Namespace) -> list[Rule]:
    """Returns the rules of the command line; raises UserError if it names an unknown rule."""
    only, skip = map(_ids, (options.only, options.skip))
    return chosen(only, skip)


def chosen(only: list[str] | None, skip: list[str] | None) -> list[Rule]:
    """Returns the rules of `--only` without those of `--skip`; raises UserError if unknown."""
    known = [rule.id for rule in RULES]
    for option, ids in (("--only", only), ("--skip", skip)):
        for name in ids or ():
            if name not in known:
                raise UserError(
                    f"{option} has {name!r}, expected rules among {', '.join(known)}; "
                    "--list-rules describes them"
                )
    return [r for r in RULES if (only is None or r.id in only) and r.id not in (skip or ())]


def print_list() -> None:
    """Prints each rule in a line."""
    for rule in RULES:
        print(f"{rule.id:<9} {rule.gone:<15} {rule.says}")


def _ids(option: str | None) -> list[str] | None:
    return None if option is None else [name.strip() for name in option.split(",")]
