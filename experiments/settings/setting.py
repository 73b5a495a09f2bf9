"""One setting: a dataclass field that is a flag, an entry of a file and a recorded parameter."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Sequence

from compat.errors import UserError, one_line

GROUPS = ("cluster", "data", "model", "training", "evaluation", "recording")
_TYPES = {"bool": bool, "int": int, "float": float, "str": str}
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
      default: its value if nothing else is given.
      help: what the value is, and its unit.
      at_least: the smallest number that is allowed.
      at_most: the largest.
      above: a number that it has to exceed.
      choices: the texts that are allowed.
      group: where --help lists it, one of `GROUPS`.
      secret: whether it is kept out of files and records.
      recorded: whether it is a parameter of the run, not of the process alone.
    """
    if group not in GROUPS:
        raise UserError(f"group {group!r} of a setting is unknown; choose one of {GROUPS}")
    return dataclasses.field(
        default=default,
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


def kind_of(field: Any) -> tuple[type, bool]:
    """Returns the type of a setting, and whether it may be None.

    Raises:
      UserError: the field was not made by `setting`, or its type is not bool, int, float or str.
    """
    if "help" not in field.metadata:
        raise UserError(
            f"setting {field.name!r} has no help; write {field.name} = setting(default, 'Help.')"
        )
    # With `from __future__ import annotations` the type is a text.
    text = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    text = text if isinstance(field.type, (str, type)) else str(field.type)
    names = set(re.findall(r"\w+", text)) - {"typing", "Optional", "Union"}
    kinds = names & set(_TYPES)
    if len(kinds) != 1 or names - kinds - {"None", "NoneType"}:
        raise UserError(
            f"setting {field.name!r} is annotated as {text}; use bool, int, float or str, or one "
            "of these | None"
        )
    optional = "None" in names or "NoneType" in names or "Optional" in text
    return _TYPES[kinds.pop()], optional


def checked(field: Any, value: Any) -> Any:
    """Returns a value of a setting in the setting's type.

    A text is read as a flag's would be, and a whole float is an int.

    Raises:
      UserError: it is of another type, or out of bounds.
    """
    kind, optional = kind_of(field)
    if value is None:
        if not optional and field.default is not None:
            raise UserError(f"--{field.name}=None has no value; give {_kind_name(kind)}")
        return None
    converted = _converted(kind, value)
    if converted is None:
        raise UserError(
            f"--{field.name}={_shown(value)} is not {_kind_name(kind)}; give one"
            + (f", such as {field.default}" if field.default not in (None, "") else "")
        )
    _check_bounds(field, converted)
    return converted


def _converted(kind: type, value: Any) -> Any:
    """Returns the value as `kind`, or None if it is no such value."""
    if kind is bool:
        words = {"true": True, "1": True, "false": False, "0": False}
        return value if isinstance(value, bool) else words.get(str(value).lower())
    if kind is str:
        return str(value) if isinstance(value, (str, int, float)) else None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = kind(value) if isinstance(value, str) else value
        if kind is int:
            return int(number) if number == int(number) else None
        return float(number)
    except (ValueError, OverflowError):
        return None


def _check_bounds(field: Any, value: Any) -> None:
    name, shown, meta = field.name, _shown(value), field.metadata
    least, most, above = meta["at_least"], meta["at_most"], meta["above"]
    if meta["choices"] is not None and value not in meta["choices"]:
        raise UserError(f"--{name}={shown} is unknown; choose one of {', '.join(meta['choices'])}")
    if isinstance(value, str):
        if "\0" in value:
            raise UserError(f"--{name}={shown} has a NUL in it; leave it out")
        return
    if isinstance(value, bool):
        return
    if (
        isinstance(value, float)
        and not math.isfinite(value)
        or above is not None
        and value <= above
    ):
        if above == 0 and most is None:
            raise UserError(f"--{name}={shown} is not a positive number; give one, such as 0.1")
        raise UserError(f"--{name}={shown} is out of range; give {bounds(field) or 'a number'}")
    if least is not None and most is not None and not least <= value <= most:
        raise UserError(f"--{name}={shown} is out of range; give {least} to {most}")
    if least is not None and value < least:
        raise UserError(f"--{name}={shown} is too small; give {least} or more")
    if most is None and isinstance(value, int):
        most = _MOST
    if most is not None and value > most:
        raise UserError(f"--{name}={shown} is too large; give {most} or fewer")


def bounds(field: Any) -> str:
    """Returns the allowed values of a setting in words, "" if all of its type are."""
    meta = field.metadata
    if meta["choices"] is not None:
        return "one of " + ", ".join(meta["choices"])
    words = []
    if meta["above"] is not None:
        words.append(f"above {meta['above']}")
    if meta["at_least"] is not None:
        words.append(f"{meta['at_least']} or more")
    if meta["at_most"] is not None:
        words.append(f"at most {meta['at_most']}")
    return ", ".join(words)


def _kind_name(kind: type) -> str:
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
    return names[kind]


def _shown(value: Any) -> str:
    text = one_line(str(value))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
