"""Functions on the operations of a graph and on the nodes of its `GraphDef`."""

from __future__ import annotations

import collections
import uuid
from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence

from compat._tensorflow import private, tf

# The first input of these operations selects the branch.
_CHOOSING = ("If", "StatelessIf", "Case", "StatelessCase")
_WRITING = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
_PASSING = ("Enter", "Switch", "Identity", "RefEnter", "RefSwitch", "RefIdentity")
_INPUTS = ("Dequeue", "GetNext", "ReaderRead", "RecordInput", "Unstage")


def scopes(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """Yields name and nodes of each function of a graph; first "" and the graph's own nodes."""
    yield "", graph_def.node
    for function in graph_def.library.function:
        yield function.signature.name, function.node_def


def is_seeded(node: Any) -> bool:
    """Whether a node draws random numbers with a seed."""
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


def is_input(kind: str) -> bool:
    """Whether operations of this type take an element from a queue, a reader or an iterator."""
    return any(part in kind for part in _INPUTS)


def inputs(node: Any) -> Iterator[str]:
    """Yields the names of the operations that a node waits for, without "^" and ":0"."""
    for name in node.input:
        yield name.lstrip("^").partition(":")[0]


def add(graph_def: Any, op: Any, names: Collection[str]) -> Any:
    """Adds the node of an operation to `graph_def`, a part of its graph; returns the node.

    Removes its colocations, and control inputs from operations that are not in `names`.
    """
    node = graph_def.node.add()
    node.CopyFrom(op.node_def)
    for attr in ("_class", "_output_shapes"):
        node.attr.pop(attr, None)
    kept = [name for name in node.input if name[0] != "^" or name[1:] in names]
    del node.input[:]
    node.input.extend(kept)
    return node


def add_functions(graph_def: Any, graph: Any) -> None:
    """Adds the functions of a graph to a part of it, each with a name of its own.

    TensorFlow 2 sends a server only the functions that are registered after it has connected, and
    ignores one whose name is registered already. A program that connects after it has built its
    graph has registered its functions too early, so they need new names.
    """
    library = private.graph_functions(graph)
    if library is not None:
        graph_def.library.CopyFrom(library)
        prefix = f"part_{uuid.uuid4().hex}_"
        names = (function.signature.name for function in library.function)
        rename_functions(graph_def, {name: prefix + name for name in names})


def register_functions(graph_def: Any) -> None:
    """Registers the functions here and on all servers that this process knows."""
    for function in graph_def.library.function:
        private.register_function(function)


def rename_functions(graph_def: Any, names: Mapping[str, str]) -> None:
    """Renames functions of a graph, and their calls."""
    for function in graph_def.library.function:
        name = function.signature.name
        function.signature.name = names.get(name, name)
    for gradient in graph_def.library.gradient:
        for field in ("function_name", "gradient_func"):
            name = getattr(gradient, field)
            setattr(gradient, field, names.get(name, name))
    for _, body in scopes(graph_def):
        for node in body:
            node.op = names.get(node.op, node.op)
            for called in called_functions(node):
                called.name = names.get(called.name, called.name)


def called_functions(node: Any) -> Iterator[Any]:
    """Yields the attributes of a node that name functions, to be read or changed."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func
        yield from value.list.func


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


def in_order(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yields nodes in topological order, without those in or after loops."""
    by_name = {node.name: node for node in nodes}
    missing, after = {}, collections.defaultdict(list)
    for name, node in by_name.items():
        before = {other for other in inputs(node) if other in by_name}
        missing[name] = len(before)
        for other in before:
            after[other].append(name)
    ready = [name for name, count in missing.items() if not count]
    while ready:
        name = ready.pop()
        yield by_name[name]
        for follower in after[name]:
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)


def calls_python(graph_def: Any) -> bool:
    """Whether a node, or a node of a function that is called, calls Python."""
    return any("PyFunc" in node.op for _, nodes in scopes(graph_def) for node in nodes)


def source(handle: Any) -> Any:
    """Returns the operation that a handle in a branch or a loop comes from."""
    op = handle.op
    while op.type in _PASSING and op.inputs:
        op = op.inputs[0].op
    return op


def fetched(fetches: Any) -> list[Any]:
    """Returns the operations of all fetches of a session's `run`, which may be nested.

    A fetch may be a variable, or the result of its `assign`, which are not tensors. A dict may have
    keys that `tf.nest` cannot sort, such as hooks.
    """
    if isinstance(fetches, dict):
        return fetched([*fetches.values()])
    if isinstance(fetches, (list, tuple)):
        return [op for each in fetches for op in fetched(each)]
    op = fetches if isinstance(fetches, tf.Operation) else getattr(fetches, "op", None)
    return [] if op is None else [op]


def dependencies(fetches: Sequence[Any], fed: Collection[str] = ()) -> Iterator[Any]:
    """Yields the operations of fetches and all that they depend on, up to the fed tensors."""
    todo = [f if isinstance(f, tf.Operation) else f.op for f in fetches]
    seen = set(todo)
    while todo:
        op = todo.pop()
        yield op
        before = [tensor.op for tensor in op.inputs if tensor.name not in fed]
        before += list(op.control_inputs)
        todo += [other for other in before if other not in seen]
        seen.update(before)
