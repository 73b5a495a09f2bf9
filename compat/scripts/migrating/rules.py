"""All rules of `python -m compat migrate`, in the order in which they are listed."""

from __future__ import annotations

from typing import Iterable

from compat.errors import UserError
from compat.scripts.migrating import arguments, modules, names, packages, python2
from compat.scripts.migrating.rule import Rule

RULES: tuple[Rule, ...] = (
    *names.RULES,
    *modules.RULES,
    *arguments.RULES,
    *python2.RULES,
    *packages.RULES,
)


def chosen(only: Iterable[str] | None, skip: Iterable[str] | None) -> list[Rule]:
    """Returns the rules of `--only` without those of `--skip`; raises UserError for others."""
    known = [rule.id for rule in RULES]
    for option, ids in (("--only", only), ("--skip", skip)):
        for name in ids or ():
            if name not in known:
                raise UserError(
                    f"{option} has {name!r}, expected rules among {', '.join(known)}; "
                    "--list-rules describes them"
                )
    return [r for r in RULES if (only is None or r.id in only) and r.id not in (skip or ())]
