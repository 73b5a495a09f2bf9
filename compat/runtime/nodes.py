"""The nodes of a graph's description."""

from __future__ import annotations

from typing import Any, Iterator


def scopes(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """Yields the nodes of the graph and of its functions, with a name for each."""
    yield "", graph_def.node
    for function in graph_def.library.function:
        yield function.signature.name, function.node_def


def is_seeded(node: Any) -> bool:
    """Whether an operation draws random numbers by a seed."""
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)
