"""Begins a model with values of another one's checkpoint, where both have a variable."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from compat.checkpoint.files import reading
from compat.checkpoint.formats.stored import BETA_POWERS, GLOBAL_STEP
from compat.checkpoint.saver import Saver
from compat.errors import UserError
from compat.runtime.interface import current_runtime


class WarmStart(NamedTuple):
    """Which variables of the model begin with values of a checkpoint.

    Attributes:
      init_fn: sets them; for `Supervisor`, which calls it unless it has a checkpoint of its own.
      taken: their names.
      fresh: the names of the model's other variables, each with the reason.
    """

    init_fn: Callable[[Any], None]
    taken: list[str]
    fresh: dict[str, str]


def warm_start(prefix: str) -> WarmStart:
    """Finds variables of the same name, shape and dtype in a checkpoint, once the model is built.

    What counts updates begins anew, and so does what an optimizer keeps for each variable.

    Args:
      prefix: of the checkpoint, such as "runs/1/model.ckpt-500".

    Raises:
      UserError: it cannot be read, or has none of the variables.
    """
    remedy = "name a log folder, or the prefix of a checkpoint such as runs/1/model.ckpt-500"
    with reading(prefix, remedy) as reader:
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    slices = current_runtime().slices()
    chosen, fresh = {}, {}
    for name, variable in _of_the_model().items():
        stored, shape = name, variable.shape.as_list()
        part = slices.get(name)
        if part is not None and name not in shapes:
            stored, shape = part.full_name, list(part.full_shape)
        found = shapes.get(stored)
        if found is None:
            fresh[name] = "not there"
        elif list(found) != shape or types[stored] != variable.dtype.base_dtype:
            there = f"{types[stored].name} {list(found)}"
            fresh[name] = f"{there} there, {variable.dtype.base_dtype.name} {shape} here"
        else:
            chosen[name] = variable
    if not chosen:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in sorted(fresh.items())[:3])
        raise UserError(
            f"checkpoint {prefix} has no variable of this model: {reasons}; name one of a model "
            "with the same names and shapes, or bring it over by python -m compat "
            "convert-checkpoint"
        )
    saver: Any = Saver(list(chosen.values()))
    return WarmStart(lambda session: saver.restore(session, prefix), sorted(chosen), fresh)


def _of_the_model() -> dict[str, Any]:
    """Returns the variables by name, without those of an optimizer and the global step."""
    variables = current_runtime().variables()
    trained = {name for name, variable in variables.items() if variable.trainable}
    return {
        name: variable
        for name, variable in variables.items()
        if name in trained or not (_is_slot(name, trained) or _is_counter(name))
    }


def _is_slot(name: str, trained: set[str]) -> bool:
    """Whether a name is one that an optimizer gives: `w/Adam`, or `train/w/Adam`, of `w`."""
    owner = name.rpartition("/")[0]
    while owner and owner not in trained:
        owner = owner.partition("/")[2]
    return bool(owner)


def _is_counter(name: str) -> bool:
    last = name.rpartition("/")[2]
    return name == GLOBAL_STEP or any(last.startswith(power) for power in BETA_POWERS)
