"""Sessions and placeholders need a graph.

TensorFlow 2.0 runs operations at once ("eager execution") unless a program switches that off. Said
once in a program, and not of one that does.
"""

from __future__ import annotations

from typing import Iterator

from compat.scripts.rules import lookup
from compat.scripts.rules.rule import Found, Rule, Script

_SWITCHES = {"compat.v1.disable_eager_execution", "compat.v1.disable_v2_behavior"}
_names = lookup.finder("graph")


def _find(script: Script) -> Iterator[Found]:
    found = next(_names(script), None)
    if found is not None and not any(name in _SWITCHES for _, name in script.known):
        yield found


RULE = Rule(
    "graph",
    "2.0",
    "sessions and placeholders need a graph, which compat run builds",
    'tf.placeholder("float")',
    find=_find,
)
