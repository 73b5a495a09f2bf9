"""One setting: a dataclass field that is a flag, an entry of a file and a recorded parameter."""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
import re
from typing import Any, Sequence

from compat.errors import UserError

GROUPS = ("cluster", "data", "model", "training", "evaluation", "recording")
_TYPES = {"bool": bool, "int": int, "float": float, "str": str}
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_MOST = 2**53  # Up to here, TensorBoard shows an integer as it is.
_SHOWN = 60


def setting(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    choices: Sequence[str] | None = None,
    group: str = "model",
    secret: bool = False,
    recorded: bool = True,
) -> Any:
    """Returns a dataclass field for a setting of an experiment.

    Args:
      default: value of a run that gives no other.
      help: what the value is, and its unit; --help adds default and bounds.
      at_least: the smallest number that is allowed.
      at_most: the largest number that is allowed.
      above: a number that the value has to exceed.
      choices: the texts that are allowed.
      group: the part of --help that lists it, one of `GROUPS`.
      secret: whether it is kept out of files and records.
      recorded: whether it is a parameter of the run, and not of its processes alone.

    Raises:
      UserError: the group does not exist.
    """
    if group not in GROUPS:
        raise UserError(f"group {group!r} of a setting is unknown; give one of {', '.join(GROUPS)}")
    return dataclasses.field(
        default=default,
        repr=not secret,
        metadata={
            "help": help,
            "at_least": at_least,
            "at_most": at_most,
            "above": above,
            "choices": None if choices is None else tuple(choices),
            "group": group,
            "secret": secret,
            "recorded": recorded and not secret,
        },
    )


def kind_of(name: str, annotation: Any) -> tuple[type, bool]:
    """Returns the type that an annotation stands for, and whether the value may be None.

    Args:
      name: of the setting, for the message.
      annotation: a type, or its text where annotations are not evaluated.

    Raises:
      UserError: the type is not bool, int, float or str, nor one of these or None.
    """
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    names = re.findall(r"[\w.]+", text)
    names = [word.rpartition(".")[2] for word in names]  # `typing.Optional` is `Optional`.
    kinds = {word for word in names if word in _TYPES}
    others = set(names) - kinds - {"None", "NoneType", "Optional", "Union"}
    if len(kinds) != 1 or others:
        raise UserError(
            f"setting {name!r} is annotated as {text}; use bool, int, float or str, or one of them "
            "with '| None'"
        )
    return _TYPES[kinds.pop()], bool({"None", "NoneType", "Optional"} & set(names))


def checked(field: Any, value: Any) -> Any:
    """Returns a value of a setting in the setting's type.

    A text is read as that of a flag is: "32" is an int of 32. An int is a float, a whole float is
    an int, and NumPy's scalars are as Python's. A number is not taken for a text.

    Args:
      field: of the settings class, made by `setting`.
      value: from a flag, a file or a keyword.

    Raises:
      UserError: it is of another type, or out of bounds.
    """
    kind, optional = kind_of(field.name, field.type)
    if value is None and (optional or field.default is None):
        return None
    converted = _converted(kind, value)
    if converted is None:
        quotes = kind is str and isinstance(value, (bool, int, float))
        example = "" if field.default in (None, "") else f", such as {_shown(field, field.default)}"
        raise UserError(
            f"--{field.name}={_shown(field, value)} is not {_KINDS[kind]}; "
            + ("put it in quotes" if quotes else f"give {_KINDS[kind]}{example}")
        )
    if isinstance(converted, str):
        _check_text(field, converted)
    elif not isinstance(converted, bool):
        _check_number(field, converted)
    return converted


def _converted(kind: type, value: Any) -> Any:
    """Returns the value as `kind`, or None if it cannot be one."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    if kind is str:
        return value if isinstance(value, str) else None
    if kind is bool:
        return value if isinstance(value, bool) else _WORDS.get(str(value).lower())
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str):
            return int(value) if kind is int else float(value)
        if kind is float:
            return float(value) if isinstance(value, numbers.Real) else None
        if isinstance(value, float):
            return int(value) if value == int(value) else None
        return operator.index(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _check_text(field: Any, value: str) -> None:
    choices = field.metadata["choices"]
    if choices is not None and value not in choices:
        raise UserError(
            f"--{field.name}={_shown(field, value)} is unknown; give one of {', '.join(choices)}"
        )
    if "\0" in value:
        raise UserError(f"--{field.name}={_shown(field, value)} has a NUL in it; leave it out")


def _check_number(field: Any, value: float) -> None:
    given, meta = f"--{field.name}={_shown(field, value)}", field.metadata
    least, most, above = meta["at_least"], meta["at_most"], meta["above"]
    finite = isinstance(value, int) or math.isfinite(value)
    if above == 0 and most is None and not (finite and value > 0):
        raise UserError(f"{given} is not a positive number; give one, such as 0.1")
    if not finite or (above is not None and value <= above):
        raise UserError(f"{given} is out of range; give a number {bounds(field)}".rstrip())
    if least is not None and most is not None and not least <= value <= most:
        raise UserError(f"{given} is out of range; give {least} to {most}")
    if least is not None and value < least:
        raise UserError(f"{given} is too small; give {least} or more")
    if isinstance(value, int) and value < -_MOST:
        raise UserError(f"{given} is too small; give {-_MOST} or more")
    if most is None and isinstance(value, int):
        most = _MOST
    if most is not None and value > most:
        raise UserError(f"{given} is too large; give {most} or less")


def bounds(field: Any) -> str:
    """Returns the allowed numbers in words, such as "1 or more"; "" if there are no bounds."""
    meta = field.metadata
    words = []
    if meta["above"] is not None:
        words.append(f"above {meta['above']}")
    if meta["at_least"] is not None and meta["at_most"] is not None:
        return f"{meta['at_least']} to {meta['at_most']}"
    if meta["at_least"] is not None:
        words.append(f"{meta['at_least']} or more")
    if meta["at_most"] is not None:
        words.append(f"at most {meta['at_most']}")
    return ", ".join(words)


def _shown(field: Any, value: Any) -> str:
    if field.metadata["secret"]:
        return "***"
    try:
        text = str(value)
    except ValueError:  # Python 3.11 and later write no integer of thousands of digits.
        text = "a number of thousands of digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
