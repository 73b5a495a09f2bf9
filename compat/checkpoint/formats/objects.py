"""Object-based checkpoints: of `tf.train.Checkpoint`, and of Keras with it.

Their keys are paths of attributes, such as `model/layer/kernel`. The graph of the objects, stored
with them, has the names of the variables, which are used here as far as they are unique.
"""

from __future__ import annotations

import collections
from typing import Any, Mapping

import numpy as np

from compat._tensorflow import internals, tf
from compat.checkpoint.formats import stored
from compat.checkpoint.formats.stored import Slot, Stored, Values

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_ITERATIONS = ("_iterations", "iter")
_SETTINGS = ("_learning_rate", "learning_rate", "decay", "momentum", "rho", "beta_1", "beta_2")
# By the name of an optimizer in Keras: its name in TensorFlow 1.x, and the roles of its slots by
# their names in Keras, where they differ.
_ROLES = {
    "adadelta": (
        "Adadelta",
        {"accum_grad": "accumulated_grad", "accum_var": "accumulated_delta_var"},
    ),
    "adagrad": ("Adagrad", {}),
    "adam": ("Adam", {"momentum": "m", "velocity": "v"}),
    "ftrl": ("Ftrl", {}),
    "rmsprop": ("RMSProp", {"rms": "velocity", "mg": "average_gradient"}),
    "sgd": ("Momentum", {"m": "momentum"}),
}


def role(optimizer: str, slot: str) -> str | None:
    """Returns the role of a slot of a Keras optimizer, such as "Adam m"; None if unknown."""
    for name, (known, roles) in _ROLES.items():
        kind = roles.get(slot, slot)
        is_known = any(kind in kinds for kinds in stored.ROLES[known])
        if plain(optimizer).startswith(name) and is_known:
            return f"{known} {kind}"
    return None


def plain(optimizer: str) -> str:
    """Returns the lower-case class name of an optimizer: "rmsprop" also for "rm_sprop"."""
    return optimizer.lower().replace("_", "")


def factor(kind: str, learning_rate: float | None) -> float | None:
    """Returns the factor that converts a slot of TensorFlow 1.x for Keras; None if unknown.

    Keras stores the momentum of SGD multiplied by minus the learning rate.
    """
    if kind != "Momentum momentum":
        return 1.0
    return -learning_rate if learning_rate else None


def is_one(values: Values) -> bool:
    """Whether the values of a checkpoint are those of an object-based one."""
    return GRAPH in values


def known(path: str, values: Values) -> Stored:
    """Returns the variables of a checkpoint, and the roles of its slots and counters."""
    graph = _graph(path)
    names = _names(graph, values)
    arrays = {names[key]: value for key, value in values.items() if key in names}
    rates = {
        key.rpartition("/")[0]: float(arrays[names[key + _VALUE]])
        for key in (k[: -len(_VALUE)] for k in names)
        if key.rpartition("/")[2] in ("_learning_rate", "learning_rate")
    }
    counters = {}
    for key, name in names.items():
        place, _, last = key[: -len(_VALUE)].rpartition("/")
        is_setting = place in rates and last in _SETTINGS
        if last in _ITERATIONS:
            counters[name] = stored.ITERATIONS
        elif is_setting or key == "save_counter" + _VALUE:
            counters[name] = stored.SETTING
    slots = {**_listed(graph, names, rates), **_named(names, arrays, rates)}
    return Stored(path, arrays, slots, counters, {name: key for key, name in names.items()})


def keyed(like: Stored, values: Values) -> Values:
    """Returns the entries of a checkpoint that the program of `like` can restore, by key.

    `values` are stored under the keys that `like` has for these names. All other entries, such as
    the object graph, are copied from `like`.
    """
    reader = tf.train.load_checkpoint(like.path)
    every = {like.keys[name]: value for name, value in values.items()}
    for key in set(reader.get_variable_to_shape_map()) - set(every):
        value = reader.get_tensor(key)  # An entry that is not a variable, as the object graph.
        # An array of bytes would lose zeros at the end.
        every[key] = np.array(value, dtype=object) if isinstance(value, bytes) else value
    return every


def _graph(path: str) -> Any:
    name = "tensorflow.core.protobuf.trackable_object_graph_pb2"
    graph = internals.load(name).TrackableObjectGraph()
    graph.ParseFromString(tf.train.load_checkpoint(path).get_tensor(GRAPH))
    return graph


def _names(graph: Any, values: Values) -> dict[str, str]:
    """Returns the names of variables in a dict by checkpoint key.

    A variable with an empty full name, or one that others share, is named after its key.
    """
    full = {
        attribute.checkpoint_key: attribute.full_name
        for node in graph.nodes
        for attribute in node.attributes
        if attribute.checkpoint_key.endswith(_VALUE) and attribute.checkpoint_key in values
    }
    count = collections.Counter(full.values())
    return {
        key: name if name and count[name] == 1 else key[: -len(_VALUE)]
        for key, name in full.items()
    }


def _listed(graph: Any, names: Mapping[str, str], rates: Mapping[str, float]) -> dict[str, Slot]:
    """Returns the optimizer slots that a checkpoint's object graph lists, by the slot's name.

    The graph lists those of `tf1.train` optimizers, and of Keras optimizers until 2.10.

    Args:
      graph: the `TrackableObjectGraph`.
      names: names of the variables by checkpoint key.
      rates: learning rates by the key of their optimizer.
    """
    keys = [
        next((a.checkpoint_key for a in node.attributes if a.checkpoint_key in names), None)
        for node in graph.nodes
    ]
    slots = {}
    for node in graph.nodes:
        children = {child.local_name: keys[child.node_id] for child in node.children}
        is_keras = "iter" in children
        for listed in node.slot_variables:
            variable = keys[listed.original_variable_node_id]
            slot = keys[listed.slot_variable_node_id]
            if variable is None or slot is None:
                continue
            optimizer = _of_slots([s.slot_name for s in node.slot_variables])
            kind = role(optimizer, listed.slot_name)
            place = slot[: -len(_VALUE)].rpartition("/.OPTIMIZER_SLOT/")[2].rpartition("/")[0]
            times = factor(kind, rates.get(place)) if kind and is_keras else 1.0
            if kind and times:
                slots[names[slot]] = Slot(names[variable], kind, times)
    return slots


def _of_slots(names: list[str]) -> str:
    """Returns the name of the optimizer that has slots of these names."""
    for slot, optimizer in (
        ("m", "adam"),
        ("rms", "rmsprop"),
        ("momentum", "sgd"),
        ("linear", "ftrl"),
        ("accumulator", "adagrad"),
        ("accum_grad", "adadelta"),
    ):
        if slot in names:
            return optimizer
    return ""


def _named(names: Mapping[str, str], values: Values, rates: Mapping[str, float]) -> dict[str, Slot]:
    """Returns the slots that only their names identify: those of Keras 3, and of Keras 2.11 on."""
    slots = {}
    for key, name in names.items():
        place, inside, _ = key.partition("/_variables/")
        if not inside:
            continue
        optimizer, _, rest = name.partition("/")
        for variable, value in values.items():
            if value.shape != values[name].shape or variable == name:
                continue
            flat = variable.replace("/", "_") + "_"
            slot = rest[len(flat) :] if rest.startswith(flat) else ""
            if rest.endswith("/" + variable):
                slot = rest[: -len(variable) - 1]
            kind = role(optimizer, slot)
            times = factor(kind, rates.get(place)) if kind else None
            if kind and times:
                slots[name] = Slot(variable, kind, times)
    return slots
