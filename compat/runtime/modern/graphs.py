"""Changes to the description of a graph before copies of it are taken into a function."""

from __future__ import annotations

import uuid
from typing import Any, Collection, Iterator, Sequence

from compat._tensorflow import private, quietly, tf1
from compat.runtime.graphs.nodes import is_seeded, scopes

_CHOOSING = ("If", "StatelessIf", "Case", "StatelessCase")  # Their first input is the choice.
_WRITING = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")


def needed(
    graph_def: Any, outputs: Sequence[str], inputs: Sequence[str], fed: Sequence[str] = ()
) -> Any:
    """Returns the part of a graph that its outputs depend on, ready to be copied several times.

    What has state gets a name by which all copies share it; and nothing waits for the inputs.
    Operations whose outputs are `fed` are left out, with what only they depend on.
    """
    nodes = sorted({name.partition(":")[0] for name in outputs})
    cut = {name.partition(":")[0] for name in fed}
    for node in graph_def.node:
        if node.name in cut:
            del node.input[:]
    with quietly():  # Says that it is deprecated, not by what.
        graph_def = tf1.graph_util.extract_sub_graph(graph_def, nodes)
    kept_nodes = [node for node in graph_def.node if node.name not in cut]
    del graph_def.node[:]
    graph_def.node.extend(kept_nodes)
    waits = {"^" + name.partition(":")[0] for name in inputs}
    token = uuid.uuid4().hex
    for scope, found in scopes(graph_def):
        for node in found:
            if node.op == "OneShotIterator":
                continue  # Cannot be named: it is shared by the copies in one function alone.
            if "shared_name" in node.attr and not node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{token}/{scope}/{node.name}".encode()
    for node in graph_def.node:
        kept = [name for name in node.input if name not in waits]
        del node.input[:]
        node.input.extend(kept)
    return graph_def


def run_anywhere(graph_def: Any, devices: Collection[str]) -> None:
    """Removes these devices from a graph, so that its operations run where their inputs are."""
    for _, nodes in scopes(graph_def):
        for node in nodes:
            if node.device in devices:
                node.device = ""


def inputs(graph_def: Any) -> set[str]:
    """Returns the names of the tensors that the nodes of a graph take, such as "x:0"."""
    names = {name for node in graph_def.node for name in node.input if name[0] != "^"}
    return {name if ":" in name else f"{name}:0" for name in names}


def without_state(graph_def: Any) -> tuple[Any, Any]:
    """Returns the graph without its stateful sources, such as tables, and a graph of those."""
    body, state = type(graph_def)(), type(graph_def)()
    for part in (body, state):
        part.CopyFrom(graph_def)
        del part.node[:]
    for node in graph_def.node:
        is_source = "shared_name" in node.attr and not node.input
        (state if is_source else body).node.add().CopyFrom(node)
    apart = {f"loc:@{node.name}".encode() for node in state.node}
    for node in state.node:
        node.attr.pop("_class", None)
    for node in body.node if apart else ():
        beside = node.attr["_class"].list.s
        beside[:] = [place for place in beside if place not in apart]
    return body, state


def reseeded(graph_def: Any, copy: int) -> Any:  # noqa: C901
    """Returns a graph whose seeded random operations draw other numbers in each copy but 0."""
    if not copy:
        return graph_def
    copied = type(graph_def)()
    copied.CopyFrom(graph_def)
    functions = {f.signature.name: f for f in copied.library.function}
    random = {name for name, f in functions.items() if any(map(is_seeded, f.node_def))}
    calling = random
    while calling:  # With those that call them.
        calling = {
            name
            for name, f in functions.items()
            if any(called.name in random for node in f.node_def for called in _called(node))
        } - random
        random |= calling
    for name in random:
        functions[name].signature.name = f"{name}_copy_{copy}"
    for _, nodes in scopes(copied):
        for node in nodes:
            if is_seeded(node):
                node.attr["seed2"].i += copy
            for called in _called(node):
                if called.name in random:
                    called.name = f"{called.name}_copy_{copy}"
    for gradient in copied.library.gradient:
        for field in ("function_name", "gradient_func"):
            if getattr(gradient, field) in random:
                setattr(gradient, field, f"{getattr(gradient, field)}_copy_{copy}")
    for name in random:
        private.register_function(functions[name])
    return copied


def calls_python(graph_def: Any) -> bool:
    """Whether anything calls a Python function, also in functions that are called."""
    return any("PyFunc" in node.op for _, nodes in scopes(graph_def) for node in nodes)


def writes(graph_def: Any, handles: Sequence[str]) -> bool:
    """Whether anything writes to resources of these operations, also in functions it calls."""
    functions = {f.signature.name: f for f in graph_def.library.function}

    def any_writes(nodes: Any, handles: set[str]) -> bool:
        for node in nodes:
            positions = [i for i, k in enumerate(node.input) if k.partition(":")[0] in handles]
            if positions and node.op.startswith(_WRITING):
                return True
            first = 1 if node.op in _CHOOSING else 0
            for called in _called(node) if positions else ():
                function = functions[called.name]
                names = [argument.name for argument in function.signature.input_arg]
                if any_writes(function.node_def, {names[i - first] for i in positions}):
                    return True
        return False

    return bool(handles) and any_writes(graph_def.node, set(handles))


def _called(node: Any) -> Iterator[Any]:
    """Yields the attributes that name functions, to be read or changed."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func
        yield from value.list.func
