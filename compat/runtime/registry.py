"""The runtimes by name, with the facts that are needed before one of them is loaded."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """The capabilities of a runtime, whose module is `compat.runtime.NAME.runtime`."""

    # Whether one task schedules the steps of all workers; else each worker runs its own graph.
    has_coordinator: bool


RUNTIMES = {"legacy": Kind(has_coordinator=False), "modern": Kind(has_coordinator=True)}


def has_coordinator(name: str) -> bool:
    """Whether the runtime `name` has a coordinator; False for "auto", which may be either."""
    return name in RUNTIMES and RUNTIMES[name].has_coordinator
