"""The old forms of all calls that have rules, by the names of the functions."""

from __future__ import annotations

from compat.scripts.rules import (
    arguments,
    concat,
    dropout,
    era,
    losses,
    means,
    reverse,
    sampled,
    shapes,
    sizes,
    split,
)
from compat.scripts.rules.forms import Form, Forms

_RULES = (arguments, concat, dropout, era, losses, means, reverse, sampled, shapes, sizes, split)


def _all() -> Forms:
    found: dict[str, tuple[Form, ...]] = {}
    for rule in _RULES:
        for name, forms in rule.FORMS.items():
            found[name] = (*found.get(name, ()), *forms)
    return found


FORMS: Forms = _all()
