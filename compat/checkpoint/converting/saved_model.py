"""Writes the SavedModel of a stored graph, with a signature, without the program that made it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from compat._tensorflow import private, quietly, tf, tf1
from compat.checkpoint import files
from compat.checkpoint.converting import graphs, stores
from compat.checkpoint.converting.graphs import Graph, operation
from compat.errors import UserError

_SIGNATURE = "serving_default"
_READABLE = "keep the files *.index and *.data-* beside it"


@dataclass(frozen=True)
class Wanted:
    """The inputs, outputs and constants of the model, as the user gave them."""

    inputs: Sequence[str] = ()  # Names of tensors or operations, or KEY=NAME.
    outputs: Sequence[str] = ()
    values: Sequence[str] = ()  # PLACEHOLDER=NUMBER.


def is_graph(path: str) -> bool:
    """Whether a path is that of a graph, not of a checkpoint."""
    return path.endswith((".pb", ".meta"))


def convert(path: str, new: str | None, wanted: Wanted) -> tuple[dict[str, Any], list[Any]]:
    """Writes the SavedModel `new` of the graph at `path`, unless `new` is None.

    Returns:
      The report as values of JSON, and the rows of its table.

    Raises:
      UserError: something is wrong with the graph, its checkpoint or a name.
    """
    values = dict(_pair("value", text) for text in wanted.values)
    graph = graphs.with_constants(graphs.read(path), values)
    outputs = _tensors(graph, "outputs", wanted.outputs or graph.outputs())
    if not outputs:
        raise UserError(
            f"{path} has no output: nothing is computed from a placeholder; "
            "name the outputs with --outputs=NAME,NAME"
        )
    named = _tensors(graph, "inputs", wanted.inputs)
    stops = [operation(name) for name in named.values()]
    reached = graph.needed(map(operation, outputs.values()), stops)
    open_ends = [name for name in graph.placeholders(reached) if name not in stops]
    if named and open_ends:
        raise UserError(
            f"the outputs of {path} need the placeholder {open_ends[0]}, which --inputs does not "
            f"name; name it, or give it a value with --value={open_ends[0]}=NUMBER"
        )
    inputs = named or _tensors(graph, "inputs", open_ends)
    small = graphs.cut(graph, [operation(n) for n in [*outputs.values(), *inputs.values()]])
    signature = _write(small, new, inputs, outputs)
    report = {"old": path, **signature, "written": new}
    rows = [
        (kind, key, entry["tensor"], str(entry["shape"]), entry["dtype"])
        for kind in ("inputs", "outputs")
        for key, entry in report[kind].items()
    ]
    return report, [(kind[:-1], *row) for kind, *row in rows]


def _write(
    graph: Graph, new: str | None, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> dict[str, Any]:
    with tf1.Graph().as_default() as built, quietly():
        try:
            tf1.train.import_meta_graph(graph.meta, clear_devices=True)
        except (ValueError, KeyError, tf1.errors.OpError) as error:
            reason = str(error).splitlines()[0].partition(" in binary running")[0]
            raise UserError(
                f"{graph.path} cannot be built on TensorFlow {tf.__version__} ({reason}); "
                "name outputs that do not need it with --outputs"
            ) from None
        tensors = {
            kind: {key: built.get_tensor_by_name(name) for key, name in names.items()}
            for kind, names in (("inputs", inputs), ("outputs", outputs))
        }
        written: dict[str, Any] = {
            kind: {key: _entry(tensor) for key, tensor in names.items()}
            for kind, names in tensors.items()
        }
        variables = tf1.global_variables()
        written["variables"] = sorted(variable.op.name for variable in variables)
        prefix = graph.path[: -len(".meta")] if graph.path.endswith(".meta") else ""
        stored = _shapes(prefix, variables)
        written["unused"] = sorted(set(stored) - {_stored_name(v) for v in variables})
        if new is None:
            return written
        with stores.unfinished(new) as folder, _session(built) as session:
            if variables:
                saver = tf1.train.Saver(variables)
                saver.restore(session, prefix)
            _save(folder, session, tensors)
    return written


def _save(folder: Path, session: Any, tensors: Mapping[str, Mapping[str, Any]]) -> None:
    info = tf1.saved_model.build_tensor_info
    signature = tf1.saved_model.build_signature_def(
        {key: info(tensor) for key, tensor in tensors["inputs"].items()},
        {key: info(tensor) for key, tensor in tensors["outputs"].items()},
        tf1.saved_model.signature_constants.PREDICT_METHOD_NAME,
    )
    has_tables = tf1.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
    builder = tf1.saved_model.Builder(str(folder))
    builder.add_meta_graph_and_variables(
        session,
        [tf1.saved_model.tag_constants.SERVING],
        {_SIGNATURE: signature},
        main_op=tf1.tables_initializer() if has_tables else None,
    )
    builder.save()


def _session(graph: Any) -> Any:
    return tf1.Session(graph=graph, config=tf1.ConfigProto(device_count={"GPU": 0}))


def _shapes(prefix: str, variables: Sequence[Any]) -> dict[str, Any]:
    """Returns the shape of each entry of the checkpoint, by name; {} if `prefix` is empty.

    Raises a `UserError` if the checkpoint lacks one of the variables, or has it in another shape.
    """
    if not prefix:
        return {}
    shapes = {name: value.shape for name, value in files.read(prefix, _READABLE).items()}
    for variable in variables:
        name = _stored_name(variable)
        info = private.slice_info(variable)
        shape = tuple(info.full_shape if info else variable.shape.as_list())
        if shapes.get(name) != shape:
            has = f"has shape {list(shapes[name])}" if name in shapes else "is missing"
            raise UserError(
                f"variable {name} of {prefix}.meta, shape {list(shape)}, {has} in the checkpoint; "
                "name the checkpoint that was saved with this graph"
            )
    return shapes


def _stored_name(variable: Any) -> str:
    info = private.slice_info(variable)
    return str(info.full_name if info else variable.op.name)


def _tensors(graph: Graph, option: str, names: Sequence[str]) -> dict[str, str]:
    """Returns tensors by their keys in the signature, from "NAME", "NAME:0" or "KEY=NAME"."""
    tensors: dict[str, str] = {}
    for text in names:
        key, name = _pair(option, text) if "=" in text else ("", text)
        if operation(name) not in graph.nodes:
            raise UserError(
                f"--{option}={text} names no operation of {graph.path}; give a name such as "
                f"{(graph.outputs() or sorted(graph.nodes))[-1]}"
            )
        number = name.partition(":")[2] or "0"
        if not number.isdigit():
            raise UserError(f"--{option}={text} is not the name of a tensor; give NAME or NAME:0")
        plain = re.sub(r"\W", "_", operation(name)) + (f"_{number}" if number != "0" else "")
        key = key or plain
        if key in tensors:
            raise UserError(f"--{option}={text} takes the key {key} twice; give KEY=NAME")
        tensors[key] = f"{operation(name)}:{number}"
    return tensors


def _pair(option: str, text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    if not (key and value):
        form = "PLACEHOLDER=NUMBER" if option == "value" else "KEY=NAME"
        raise UserError(f"--{option}={text} is not a pair; give {form}")
    return key, value


def _entry(tensor: Any) -> dict[str, Any]:
    shape = None if tensor.shape.rank is None else tensor.shape.as_list()
    return {"tensor": tensor.name, "shape": shape, "dtype": tensor.dtype.base_dtype.name}
