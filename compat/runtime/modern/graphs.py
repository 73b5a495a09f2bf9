"""Changes to the description of a graph before copies of it are taken into a function."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from compat._tensorflow import private
from compat.runtime.graphs.nodes import is_seeded, scopes

_CHOOSING = ("If", "StatelessIf", "Case", "StatelessCase")  # Their first input is the choice.
_WRITING = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")


def share(graph_def: Any, prefix: str) -> None:
    """Names the state inside a graph, so that all copies of it share that; names stay as given."""
    for scope, found in scopes(graph_def):
        for node in found:
            if node.op == "OneShotIterator":
                continue  # Cannot be named: it is shared by the copies in one function alone.
            if "shared_name" in node.attr and not node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{prefix}{scope}/{node.name}".encode()


def inputs(graph_def: Any) -> set[str]:
    """Returns the names of the tensors that the nodes of a graph take, such as "x:0"."""
    names = {name for node in graph_def.node for name in node.input if name[0] != "^"}
    return {name if ":" in name else f"{name}:0" for name in names}


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
