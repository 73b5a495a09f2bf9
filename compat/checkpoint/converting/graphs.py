"""Reads graphs without their programs: frozen ones, and `.meta` files beside a checkpoint.

A graph is cut down to what its outputs need, so that neither the training part nor operations
that this TensorFlow no longer has are in the way.
"""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from compat._tensorflow import internals, tf1
from compat.errors import UserError, unless_usable

_FILES = "name a frozen graph, *.pb, or the file *.meta of a checkpoint"
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_TABLES = re.compile(r"(InitializeTable(FromTextFile|FromDataset)?|LookupTableImport)(V2)?")
_COLLECTIONS = ("variables", "local_variables", "model_variables", "trainable_variables")
# Operations that train or store values, and are no results of a model.
_TRAINS = re.compile(r"(Resource|Sparse)*(Apply|Scatter)|Assign|Save|Restore")
_NO_RESULTS = ("Assert", "NoOp", "Print", "PrintV2", "Rank", "Shape", "ShapeN", "Size")
_IS_SUMMARY = re.compile(r"Summary(V2)?$")
_IN_TRAINING = re.compile(r"(^|/)(gradients|save)(_\d+)?/")
_KEPT = 3  # The largest number of names in an error.


@dataclass(frozen=True)
class Graph:
    """A stored graph, as a `MetaGraphDef`; that of a frozen graph has only its `graph_def`."""

    path: str
    meta: Any

    @property
    def nodes(self) -> dict[str, Any]:
        """The nodes by name."""
        return {node.name: node for node in self.meta.graph_def.node}

    @property
    def variables(self) -> dict[str, Any]:
        """The `VariableDef` of each variable, by the name of the variable's operation."""
        kind = internals.load("tensorflow.core.framework.variable_pb2").VariableDef
        variables: dict[str, Any] = {}
        for collection in _COLLECTIONS:
            for text in self.meta.collection_def[collection].bytes_list.value:
                variable = kind.FromString(text)
                variables[operation(variable.variable_name)] = variable
        return variables

    def needed(self, names: Iterable[str], stops: Iterable[str] = ()) -> set[str]:
        """Returns the operations `names` and all that they depend on, except through `stops`."""
        nodes, waiting, reached = self.nodes, list(names), set()
        while waiting:
            name = waiting.pop()
            if name not in reached and name in nodes:
                reached.add(name)
                if name not in stops:
                    waiting.extend(operation(source) for source in nodes[name].input)
        return reached

    def placeholders(self, names: Iterable[str]) -> list[str]:
        """Returns those of the operations `names` that are placeholders, in the graph's order."""
        wanted = set(names)
        placeholders = [n for n in self.meta.graph_def.node if n.op in _PLACEHOLDERS]
        return [node.name for node in placeholders if node.name in wanted]

    def outputs(self) -> list[str]:
        """Returns the operations that compute the outputs of the model from its placeholders.

        No other operation uses their results, except those that train, save or summarize.
        """
        nodes = self.nodes
        fed = self._after(name for name, node in nodes.items() if node.op in _PLACEHOLDERS)
        training = self._after(name for name, node in nodes.items() if _is_training(node))
        computing = {n for n in fed - training if not _tells_nothing(nodes[n])}
        used = {operation(source) for name in computing for source in nodes[name].input}
        ends = [n.name for n in self.meta.graph_def.node if n.name in computing - used]
        return [name for name in ends if nodes[name].op not in _PLACEHOLDERS]

    def _after(self, names: Iterable[str]) -> set[str]:
        """Returns the operations `names` and all operations that depend on them."""
        followers = collections.defaultdict(list)
        for node in self.meta.graph_def.node:
            for source in node.input:
                followers[operation(source)].append(node.name)
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(followers[name])
        return reached


def operation(tensor: str) -> str:
    """Returns the name of the operation of a tensor or a control input, "a" for "^a" and "a:0"."""
    return tensor.lstrip("^").partition(":")[0]


def read(path: str) -> Graph:
    """Returns the graph in a file.

    Raises:
      UserError: it cannot be read, is not a graph, or is a frozen one with variables.
    """
    with unless_usable(f"{path} cannot be read", _FILES):
        content = Path(path).read_bytes()
    meta = tf1.MetaGraphDef()
    try:
        (meta if path.endswith(".meta") else meta.graph_def).ParseFromString(content)
    except Exception:  # Each implementation of protobuf has another class of this error.
        raise UserError(f"{path} is not a graph of TensorFlow; {_FILES}") from None
    graph = Graph(path, meta)
    if not graph.nodes:
        raise UserError(f"{path} holds no operations; {_FILES}")
    variables = [name for name, node in graph.nodes.items() if node.op in _VARIABLES]
    if variables and not path.endswith(".meta"):
        more = f" and {len(variables) - _KEPT} more" if len(variables) > _KEPT else ""
        raise UserError(
            f"{path} is not frozen: it has the variables {', '.join(variables[:_KEPT])}{more} "
            "without values; name the file *.meta of its checkpoint"
        )
    return graph


def with_constants(graph: Graph, values: Mapping[str, str]) -> Graph:
    """Returns the graph with the placeholders in `values` replaced by constants, given as text."""
    meta = tf1.MetaGraphDef()
    meta.CopyFrom(graph.meta)
    nodes = {node.name: node for node in meta.graph_def.node}
    for name, text in values.items():
        node = nodes.get(name)
        if node is None or not node.op.startswith("Placeholder"):
            raise UserError(
                f"--value={name}={text} names no placeholder of {graph.path}; "
                f"give one of {', '.join(graph.placeholders(nodes)) or 'its own'}"
            )
        dtype = tf1.as_dtype(node.attr["dtype"].type)
        try:
            number = {"true": 1.0, "false": 0.0}.get(text.lower())
            value = dtype.as_numpy_dtype(float(text) if number is None else number)
        except (TypeError, ValueError):
            raise UserError(
                f"--value={name}={text} is not a {dtype.name}; give a number, true or false"
            ) from None
        node.Clear()
        node.name, node.op = name, "Const"
        node.attr["dtype"].type = dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf1.make_tensor_proto(value, dtype))
    return Graph(graph.path, meta)


def cut(graph: Graph, names: Sequence[str]) -> Graph:
    """Returns the part of a graph that the operations `names` need, with variables and tables."""
    variables, nodes = graph.variables, graph.nodes
    kept: set[str] = set()
    more = graph.needed(names)
    while more - kept:
        kept |= more
        extra = [
            name
            for name, node in nodes.items()
            if _fills_table(node) and operation(node.input[0]) in kept
        ]
        for name in kept & set(variables):
            variable = variables[name]
            extra += map(operation, [variable.initializer_name, variable.initial_value_name])
            extra.append(operation(variable.snapshot_name))
        more = graph.needed(extra)
    meta = tf1.MetaGraphDef()
    meta.meta_info_def.CopyFrom(graph.meta.meta_info_def)
    meta.graph_def.versions.CopyFrom(graph.meta.graph_def.versions)
    meta.graph_def.library.CopyFrom(graph.meta.graph_def.library)
    for node in graph.meta.graph_def.node:
        if node.name in kept:
            copy = meta.graph_def.node.add()
            copy.CopyFrom(node)
            # Drop a control dependency on a removed part of the graph.
            del copy.input[:]
            copy.input.extend(source for source in node.input if operation(source) in kept)
            copy.attr.pop("_class", None)
    listed = [variable.SerializeToString() for name, variable in variables.items() if name in kept]
    if listed:
        meta.collection_def["variables"].bytes_list.value.extend(listed)
    tables = [name for name in kept if _fills_table(nodes[name])]
    if tables:
        meta.collection_def["table_initializer"].node_list.value.extend(sorted(tables))
    return Graph(graph.path, meta)


def _fills_table(node: Any) -> bool:
    return bool(_TABLES.fullmatch(node.op)) and not _IN_TRAINING.search(node.name)


def _is_training(node: Any) -> bool:
    return bool(_TRAINS.match(node.op) or _IN_TRAINING.search(node.name))


def _tells_nothing(node: Any) -> bool:
    return node.op in _NO_RESULTS or bool(_IS_SUMMARY.search(node.op))
