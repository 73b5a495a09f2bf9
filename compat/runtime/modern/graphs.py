"""Inspects the `GraphDef` of a step, and lets all copies of it share their state."""

from __future__ import annotations

from typing import Any, Sequence

from compat.runtime.graphs.nodes import called_functions, scopes

# The first input of these operations selects the branch.
_CHOOSING = ("If", "StatelessIf", "Case", "StatelessCase")
_WRITING = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")


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


def writes(graph_def: Any, handles: Sequence[str]) -> bool:
    """Returns whether any operation, also in called functions, writes to these resources."""
    functions = {f.signature.name: f for f in graph_def.library.function}

    def any_writes(nodes: Any, handles: set[str]) -> bool:
        for node in nodes:
            positions = [i for i, k in enumerate(node.input) if k.partition(":")[0] in handles]
            if positions and node.op.startswith(_WRITING):
                return True
            first = 1 if node.op in _CHOOSING else 0
            for called in called_functions(node) if positions else ():
                function = functions[called.name]
                names = [argument.name for argument in function.signature.input_arg]
                if any_writes(function.node_def, {names[i - first] for i in positions}):
                    return True
        return False

    return bool(handles) and any_writes(graph_def.node, set(handles))
