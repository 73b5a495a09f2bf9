"""The runtimes by name, and what tells them apart before one of them is loaded."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """Which function of `compat.runtime` makes a runtime, and what that has."""

    module: str
    function: str
    has_coordinator: bool  # One task hands out steps, the updates of all; else each runs a graph.


RUNTIMES = {
    "legacy": Kind("legacy.runtime", "create", has_coordinator=False),
    "modern": Kind("modern.runtime", "create", has_coordinator=True),
}
# The same names where a program has disabled eager execution: it is one graph on either.
OF_GRAPHS = {**RUNTIMES, "modern": Kind("legacy.runtime", "create_modern", has_coordinator=False)}


def has_coordinator(name: str) -> bool:
    """Whether the runtime that a flag names has a coordinator; not "auto", which may be either."""
    return name in RUNTIMES and RUNTIMES[name].has_coordinator
