"""Compares the variables of a checkpoint with those of a model."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from compat.checkpoint.matching import dtype_name
from compat.errors import UserError


class Comparison(NamedTuple):
    """The differences between a checkpoint and a model; partitioned variables are named as a whole.

    Attributes:
      same: The names of the variables that the checkpoint has with the same shape and dtype.
      different: Messages about the other variables, such as "w is missing".
      unknown: Messages about further entries of the checkpoint, such as optimizer slots.
    """

    same: list[str]
    different: list[str]
    unknown: list[str]


def stored(reader: Any) -> dict[str, str]:
    """Returns dtype and shape, as text, of each entry of TensorFlow's checkpoint reader."""
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    return {name: _kind(types[name].base_dtype.name, shapes[name]) for name in shapes}


def stored_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Returns dtype and shape, as text, of each array."""
    return {name: _kind(dtype_name(value), value.shape) for name, value in values.items()}


def compare(
    entries: Mapping[str, str], variables: Mapping[str, Any], slices: Mapping[str, Any]
) -> Comparison:
    """Compares the entries of a checkpoint with variables.

    Args:
      entries: the result of `stored` or `stored_values`.
      variables: variables by name.
      slices: the `SaveSliceInfo` of each part of a partitioned variable, by name.
    """
    same: list[str] = []
    different: dict[str, None] = {}  # Ordered, and the same message of several parts only once.
    known: set[str] = set()
    for name, variable in sorted(variables.items()):
        part = None if name in entries else slices.get(name)
        entry = name if part is None else part.full_name
        known.add(entry)
        shape = variable.shape.as_list() if part is None else part.full_shape
        expected = _kind(variable.dtype.base_dtype.name, shape)
        if entry not in entries:
            different[f"{entry} is missing"] = None
        elif entries[entry] != expected:
            different[f"{entry} is {entries[entry]} instead of {expected}"] = None
        else:
            same.append(name)
    unknown = [f"{name} is unknown here" for name in sorted(set(entries) - known)]
    return Comparison(same, [*different], unknown)


def unfit(prefix: str, problems: Sequence[str]) -> UserError:
    """Returns the error for a checkpoint of another model or optimizer, with the `problems`."""
    return UserError(
        f"checkpoint {prefix} is of another model or optimizer: {first(problems)}; choose another "
        "log folder, or the settings it was made with, or bring it over by python -m compat "
        "convert-checkpoint"
    )


def first(problems: Sequence[str]) -> str:
    """Joins the first three messages, and adds the number of the others."""
    return "; ".join(problems[:3]) + (f" and {len(problems) - 3} more" if problems[3:] else "")


def _kind(dtype: str, shape: Iterable[int]) -> str:
    return f"{dtype} {[int(size) for size in shape]}"
