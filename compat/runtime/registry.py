"""The runtimes by name, and what tells them apart before one of them is loaded."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of runtime.

    Attributes:
      module: of `compat.runtime`, which makes it.
      function: of the module.
      has_coordinator: whether one task hands out steps, the updates of all workers; else each task
        that trains runs a graph of its own.
    """

    module: str
    function: str
    has_coordinator: bool


RUNTIMES = {
    "legacy": Kind("legacy.runtime", "create", has_coordinator=False),
    "modern": Kind("modern.runtime", "create", has_coordinator=True),
}
# The same names where a program has disabled eager execution: it is one graph on either.
OF_GRAPHS = {**RUNTIMES, "modern": Kind("legacy.runtime", "create_modern", has_coordinator=False)}


def has_coordinator(name: str) -> bool:
    """Whether the runtime that a flag names has a coordinator; not "auto", which may be either."""
    return name in RUNTIMES and RUNTIMES[name].has_coordinator
