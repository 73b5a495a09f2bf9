"""Weights of Keras 3: files `*.weights.h5`, as `model.save_weights` writes them.

The file numbers the variables of each layer: `layers/dense/vars/0`. If the class of a layer is
known, its variables get the names that Keras gives them, `hidden/kernel`. An optimizer numbers its
slots in the order of the model's variables, which the file does not have, so the slots are matched
only if the shapes allow a single order.
"""

from __future__ import annotations

import collections
import functools
import importlib
import os
import re
import shutil
from typing import Any, Mapping, Sequence

from compat.checkpoint.formats import objects, stored
from compat.checkpoint.formats.stored import Slot, Stored, Values
from compat.errors import UserError

ENDING = ".weights.h5"
_KERNEL = ("kernel", "bias")
_NORM = ("gamma", "beta", "moving_mean", "moving_variance")
# The names of the variables of a layer, by its class as the file spells it. A layer has all of
# them, or the first ones, as without a bias.
_VARIABLES: Mapping[str, Sequence[str]] = {
    "conv1d": _KERNEL,
    "conv1d_transpose": _KERNEL,
    "conv2d": _KERNEL,
    "conv2d_transpose": _KERNEL,
    "conv3d": _KERNEL,
    "conv3d_transpose": _KERNEL,
    "dense": _KERNEL,
    "depthwise_conv2d": _KERNEL,
    "embedding": ("embeddings",),
    "p_re_lu": ("alpha",),
    "separable_conv2d": ("depthwise_kernel", "pointwise_kernel", "bias"),
}
# A layer of these classes may lack any of its variables, so the variables are known
# only if the file has all of them.
_WHOLE = {"batch_normalization": _NORM, "layer_normalization": _NORM[:2]}
_UNTRAINED = _NORM[2:]
_MOST_TIMES = 1100  # The highest compression ratio of HDF5.
_OPTIMIZER = "optimizer/vars"
# The slots of Keras' optimizers in the order of the file.
_SLOTS = {
    "adam": ("momentum", "velocity"),
    "sgd": ("momentum",),
    "adagrad": ("accumulator",),
    "adadelta": ("accumulated_grad", "accumulated_delta_var"),
    "ftrl": ("accumulator", "linear"),
    "rmsprop": ("velocity",),
}

Layer = Sequence[str]  # The names of a layer's trained variables.


def is_one(path: str) -> bool:
    """Whether a path is that of a file of Keras weights."""
    return path.endswith(ENDING)


def read(path: str) -> Stored:
    """Returns the variables of a file, and the roles of the optimizer's variables.

    Raises:
      UserError: it cannot be read, or h5py, which TensorFlow requires, is not installed.
    """
    if not os.path.isfile(path):
        raise UserError(f"{path} is not a file; name one of model.save_weights of Keras 3")
    try:
        with _h5py().File(path, "r") as file:
            _check_that_all_is_inside(path, file)
            groups = _groups(file)
            labels = {group: str(file[group].attrs.get("name", "")) for group in groups}
            arrays = {
                f"{group}/{key}": file[group][key][()] for group in groups for key in groups[group]
            }
    except UserError:
        raise
    except Exception as error:  # h5py raises errors of many classes for broken files.
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{path} cannot be read ({reason}); name a file of model.save_weights"
        ) from None
    if not arrays:
        raise UserError(f"{path} holds no variables; name a file of model.save_weights of Keras 3")
    names = _names(groups, labels)
    values = {names.get(key, key): value for key, value in arrays.items()}
    counters, slots = {}, {}
    if _OPTIMIZER in groups:
        counters = {f"{_OPTIMIZER}/0": stored.ITERATIONS}
        if _rate(values) is not None:
            counters[f"{_OPTIMIZER}/1"] = stored.SETTING
        slots = _slots(values, labels[_OPTIMIZER], _layers(groups, names, values))
    return Stored(path, values, slots, counters, {names.get(key, key): key for key in arrays})


def write(path: str, like: Stored, values: Values) -> None:
    """Writes a copy of the file that `like` was read from, with these values."""
    shutil.copyfile(like.path, path)
    with _h5py().File(path, "r+") as file:
        _check_that_all_is_inside(like.path, file)
        for name, value in values.items():
            file[like.keys[name]][...] = value


def _h5py() -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise UserError(
            "the package h5py, by which Keras stores weights, is not installed; pip install h5py"
        ) from None


def _check_that_all_is_inside(path: str, file: Any) -> None:
    """Raises `UserError` if a file refers to other files, or claims more data than it can hold.

    HDF5 follows a link to another file, even to write there. So a file from someone else could read
    or change any file of the user, and one that claims far more data could exhaust the memory.
    """
    most = _MOST_TIMES * os.path.getsize(path)

    def check(group: Any, place: str) -> None:
        for name in group:
            link, where = group.get(name, getlink=True), f"{place}{name}"
            if type(link).__name__ == "ExternalLink":
                raise _foreign(path, where, f"is a link to the file {link.filename!r}")
            if type(link).__name__ != "HardLink":
                continue  # The target of a soft link has a hard link as well.
            item = group[name]
            if not hasattr(item, "shape"):
                if hasattr(item, "keys") and item.id not in seen:
                    seen.add(item.id)
                    check(item, where + "/")
                continue
            stored = item.id.get_create_plist()
            if stored.get_external_count():
                other = stored.get_external(0)[0].decode("utf-8", "replace")
                raise _foreign(path, where, f"has its values in the file {other!r}")
            if getattr(item, "is_virtual", False):
                raise _foreign(path, where, "is made of values of other files")
            size = int(item.size or 0) * item.dtype.itemsize
            if size > most:
                raise UserError(
                    f"{path}: {where} claims {size:,} bytes, more than a file of its size holds; "
                    "name a file of model.save_weights"
                )

    seen = {file.id}
    check(file, "")


def _foreign(path: str, where: str, what: str) -> UserError:
    return UserError(
        f"{path}: {where} {what}, which is not read; name a file of model.save_weights, which "
        "holds all of its values"
    )


def _groups(file: Any) -> dict[str, list[str]]:
    """Returns the variables in each group of a file, which are named by numbers: ["0", "1"]."""
    groups: dict[str, list[str]] = collections.defaultdict(list)

    def visit(name: str, item: Any) -> None:
        group, _, number = name.rpartition("/")
        if hasattr(item, "shape") and re.fullmatch(r"(?:.*/)?vars/\d+", name):
            groups[group].append(number)

    file.visititems(visit)
    return {group: sorted(numbers, key=int) for group, numbers in groups.items()}


def _class(group: str) -> str:
    """Returns the class of a layer, "dense" for the group "layers/dense_1/vars"."""
    return re.sub(r"_\d+$", "", group.rpartition("/")[0].rpartition("/")[2])


def _names(groups: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of variables by their keys, as far as they are known."""
    names = {}
    repeated = collections.Counter(labels.values())
    for group, numbers in groups.items():
        known = _VARIABLES.get(_class(group), ())
        whole = _WHOLE.get(_class(group), ())
        is_known = len(numbers) <= len(known) or len(numbers) == len(whole)
        if is_known and "layers/" in group and repeated[labels[group]] == 1:
            for number, variable in zip(numbers, known or whole):
                names[f"{group}/{number}"] = f"{labels[group]}/{variable}"
    return names


def _layers(
    groups: Mapping[str, Sequence[str]], names: Mapping[str, str], values: Values
) -> list[list[Layer]]:
    """Returns a list of layers for each class, each list in the order of the model."""

    def is_trained(name: str) -> bool:  # A random generator's state, for example, is not.
        return name.rpartition("/")[2] not in _UNTRAINED and values[name].dtype.kind == "f"

    classes: dict[str, list[str]] = collections.defaultdict(list)
    for group in groups:
        if group != _OPTIMIZER:
            classes[f"{group.rpartition('/')[0].rpartition('/')[0]}/{_class(group)}"].append(group)
    layers: list[list[Layer]] = []
    for members in classes.values():
        members.sort(key=lambda group: int((re.findall(r"_(\d+)/vars$", group) or [0])[0]))
        variables = [[names.get(f"{g}/{n}", f"{g}/{n}") for n in groups[g]] for g in members]
        layers.append([list(filter(is_trained, layer)) for layer in variables])
    return layers


def _rate(values: Values) -> float | None:
    """Returns the learning rate; None if a schedule computes it, since files do not store that."""
    rate = values.get(f"{_OPTIMIZER}/1")
    return float(rate) if rate is not None and rate.shape == () else None


def _slots(values: Values, optimizer: str, layers: Sequence[Sequence[Layer]]) -> dict[str, Slot]:
    kinds = next((k for name, k in _SLOTS.items() if objects.plain(optimizer).startswith(name)), ())
    rate = _rate(values)
    count = sum(name.startswith(_OPTIMIZER) for name in values)
    keys = [f"{_OPTIMIZER}/{n}" for n in range(1 if rate is None else 2, count)]
    if not kinds or not keys or len(keys) % len(kinds):
        return {}
    order = _order([values[key].shape for key in keys[:: len(kinds)]], values, layers)
    slots = {}
    for index, key in enumerate(keys if order else ()):
        variable, slot = order[index // len(kinds)], kinds[index % len(kinds)]
        kind = objects.role(optimizer, slot)
        times = objects.factor(kind, rate) if kind else None
        if kind and times and values[key].shape == values[variable].shape:
            slots[key] = Slot(variable, kind, times)
    return slots


def _order(
    shapes: Sequence[tuple[int, ...]], values: Values, layers: Sequence[Sequence[Layer]]
) -> list[str]:
    """Returns the names of the variables in the order in which the file has the optimizer's slots.

    The file does not name the order of the layers. It is the order in which the variables have the
    `shapes` of the slots; if several orders or none have them, this returns [].
    """

    def fits(layer: Layer, at: int) -> bool:
        return [values[name].shape for name in layer] == list(shapes[at : at + len(layer)])

    @functools.lru_cache(maxsize=None)
    def orders(taken: tuple[int, ...], at: int) -> tuple[tuple[str, ...], ...]:
        """Returns up to two orders of the remaining layers that fit the shapes from index `at` on.

        `taken` is the number of layers of each class that are already in the order.
        """
        if all(count == len(layer) for count, layer in zip(taken, layers)):
            return ((),) if at == len(shapes) else ()
        ways: list[tuple[str, ...]] = []
        for index, (count, layer) in enumerate(zip(taken, layers)):
            if count < len(layer) and fits(layer[count], at):
                after = (*taken[:index], count + 1, *taken[index + 1 :])
                rest = orders(after, at + len(layer[count]))
                ways.extend(
                    (*layer[count], *way) for way in rest if (*layer[count], *way) not in ways
                )
        return tuple(ways[:2])

    candidates = orders((0,) * len(layers), 0)
    return list(candidates[0]) if len(candidates) == 1 else []
