"""The runtimes by name, with the facts that are needed before one of them is loaded."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """The capabilities of a runtime, whose module is `compat.runtime.NAME.runtime`."""

    has_coordinator: bool  # One task hands out steps, the updates of all; else each runs a graph.


RUNTIMES = {"legacy": Kind(has_coordinator=False), "modern": Kind(has_coordinator=True)}


def has_coordinator(name: str) -> bool:
    """Whether the runtime that a flag names has a coordinator; not "auto", which may be either."""
    return name in RUNTIMES and RUNTIMES[name].has_coordinator
