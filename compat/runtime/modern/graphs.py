"""Lets all copies of a step's graph share their state."""

from __future__ import annotations

from typing import Any

from compat.runtime.graphs.nodes import scopes


def share(graph_def: Any, prefix: str) -> None:
    """Gives the state in a graph shared names, so that all copies use it."""
    for scope, body in scopes(graph_def):
        for node in body:
            if node.op == "OneShotIterator":
                # This operation cannot have a shared name: only copies in one function share it.
                continue
            if "shared_name" in node.attr and not node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{prefix}{scope}/{node.name}".encode()


def inputs(graph_def: Any) -> set[str]:
    """Returns the names of the tensors that the nodes of a graph take, such as "x:0"."""
    names = {name for node in graph_def.node for name in node.input if name[0] != "^"}
    return {name if ":" in name else f"{name}:0" for name in names}
