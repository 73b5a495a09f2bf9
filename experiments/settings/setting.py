"""One setting: a dataclass field that is a flag, an entry of a file and a recorded parameter.

A field that has no help, an unsupported type or a name that is taken is a `UserError`; so is a
value that is of another type or out of bounds.
"""

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
_NONE = {"None", "NoneType", "Optional"}
_SEQUENCES = {"list", "List", "tuple", "Tuple", "Sequence"}
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
# Names of flags that are not settings: they concern this process only, or the other flags.
PROCESS_FLAGS = frozenset(
    ["job_name", "task_index", "ps_hosts", "worker_hosts", "parameter_servers", "workers"]
    + ["config", "print_config", "preset", "traceback", "dry_run"]
)
_MOST = 2**53  # The largest integer up to which TensorBoard shows all integers exactly.
# Bounds of float32, in which steps compute: beyond them a number would become infinite or 0.
_LARGEST, _SMALLEST = 3.4e38, 1.2e-38


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
      default: the value for a run that sets no other.
      help: what the value is, and its unit; --help adds the default and the bounds.
      at_least: the smallest number that is allowed.
      at_most: the largest number that is allowed.
      above: a number that the value has to exceed.
      choices: the texts that are allowed.
      group: the part of --help that lists it, one of `GROUPS`.
      secret: whether the value is kept out of files and records.
      recorded: whether the value is recorded as a parameter of the run; False for a setting that
        concerns only the processes of the run.

    Raises:
      UserError: the group does not exist.
    """
    if group not in GROUPS:
        raise UserError(f"group {group!r} of a setting is unknown; give one of {', '.join(GROUPS)}")
    metadata = {
        "help": help,
        "at_least": at_least,
        "at_most": at_most,
        "above": above,
        "choices": None if choices is None else tuple(choices),
        "group": group,
        "secret": secret,
        "recorded": recorded and not secret,
    }
    return dataclasses.field(default=default, repr=not secret, metadata=metadata)


def wrong(cls: type, name: str, reason: str) -> UserError:
    """Returns an error about the setting `name` of the class `cls`."""
    return UserError(f"setting {name!r} of {cls.__name__} {reason}")


def text_of_type(annotation: Any) -> str:
    """Returns an annotation as text; under `from __future__ import annotations` it is text."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def kind_of(name: str, annotation: Any) -> tuple[type, bool]:
    """Returns the type of a setting's values by its annotation, and whether they may be None."""
    text = text_of_type(annotation)
    # `typing.Optional` is `Optional`.
    names = {word.rpartition(".")[2] for word in re.findall(r"[\w.]+", text)}
    kinds = names & set(_TYPES)
    if len(kinds) != 1 or names - kinds - _NONE - {"Union"}:
        remedy = "use bool, int, float or str, or one of them with '| None'"
        if names & _SEQUENCES:
            remedy = f"write several values as one text, as in {name}: str = setting('16,8', ...)"
        raise UserError(f"setting {name!r} is annotated as {text}; {remedy}")
    return _TYPES[kinds.pop()], bool(names & _NONE)


def checked(field: Any, value: Any) -> Any:
    """Returns the value of a setting, from a flag, a file or a keyword, in the setting's type.

    Text is converted as on a command line: "32" becomes the int 32. An int is accepted as a float,
    a whole float as an int, and a NumPy scalar as a Python one. A number is not accepted as text.
    A value that cannot be converted, or is not allowed, is a `UserError`.
    """
    kind, optional = kind_of(field.name, field.type)
    if value is None and (optional or field.default is None):
        return None
    converted = _converted(kind, value)
    given = f"--{field.name}={_shown(field, value if converted is None else converted)}"
    if converted is None:
        remedy = f"give {_KINDS[kind]}"
        if kind is str and isinstance(value, (bool, int, float)):
            remedy = "put it in quotes"
        elif field.default not in (None, "", value):
            remedy += f", such as {_shown(field, field.default)}"
        raise UserError(f"{given} is not {_KINDS[kind]}; {remedy}")
    if kind in (int, float):
        _check_number(field, given, converted)
    choices = field.metadata["choices"]
    if kind is str and choices is not None and converted not in choices:
        raise UserError(f"{given} is unknown; give one of {', '.join(choices)}")
    if kind is str and "\0" in converted:
        raise UserError(f"{given} has a NUL in it; leave it out")
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
            return kind(value)
        if kind is float:
            return float(value) if isinstance(value, numbers.Real) else None
        if isinstance(value, float):
            return int(value) if value == int(value) else None
        return operator.index(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _check_number(field: Any, given: str, value: float) -> None:
    least, most, above = (field.metadata[name] for name in ("at_least", "at_most", "above"))
    finite = isinstance(value, int) or math.isfinite(value)
    if above == 0 and most is None and not (finite and value > 0):
        raise UserError(f"{given} is not a positive number; give one, such as 0.1")
    if not finite or (above is not None and value <= above):
        raise UserError(f"{given} is out of range; give a number {bounds(field)}".rstrip())
    if isinstance(value, float) and abs(value) > _LARGEST:
        raise UserError(f"{given} is too large; give {_LARGEST} or less, which float32 holds")
    if isinstance(value, float) and 0 < abs(value) < _SMALLEST:
        raise UserError(f"{given} is too small; give 0 or {_SMALLEST} or more, as float32 holds")
    if None not in (least, most) and not least <= value <= most:
        raise UserError(f"{given} is out of range; give {least} to {most}")
    if isinstance(value, int):
        least, most = (-_MOST if least is None else least), (_MOST if most is None else most)
    if least is not None and value < least:
        raise UserError(f"{given} is too small; give {least} or more")
    if most is not None and value > most:
        raise UserError(f"{given} is too large; give {most} or less")


def bounds(field: Any) -> str:
    """Returns the allowed numbers in words, such as "1 or more"; "" if there are no bounds."""
    least, most, above = (field.metadata[name] for name in ("at_least", "at_most", "above"))
    if None not in (least, most):
        return f"{least} to {most}"
    words = {"above {}": above, "{} or more": least, "at most {}": most}
    return ", ".join(form.format(number) for form, number in words.items() if number is not None)


def _shown(field: Any, value: Any) -> str:
    if field.metadata["secret"]:
        return "***"
    try:
        return shortened(str(value))
    except ValueError:  # Python 3.11 and later refuse to print an integer of thousands of digits.
        return "a number of thousands of digits"


def shortened(text: str, most: int = 60) -> str:
    """Returns a text for a message: only its beginning if it has more than `most` characters."""
    return text if len(text) <= most else text[:most] + "..."


def prepare(cls: type, base: type) -> None:  # noqa: C901
    """Verifies the fields that a class itself declares, before the decorator `dataclass` reads it.

    An inherited field that is declared again with a plain value keeps its help and bounds. `base`
    is the class `Settings`; a new field must not have the name of one of its methods.
    """
    known = getattr(cls, "__dataclass_fields__", {})  # The fields of its parents.
    annotations = vars(cls).get("__annotations__", {})
    for name, value in vars(cls).items():
        if (isinstance(value, dataclasses.Field) or name in known) and name not in annotations:
            raise wrong(cls, name, f"has no type; write {name}: int = ..., or another type")
    for name, annotation in annotations.items():
        if "ClassVar" in str(annotation):
            continue
        value = vars(cls).get(name, dataclasses.MISSING)
        parent = known.get(name)
        kind, _ = kind_of(name, annotation)
        if name in PROCESS_FLAGS:
            raise wrong(cls, name, "has the name of a flag of each process; choose another name")
        if parent is None and hasattr(base, name):
            raise wrong(cls, name, "has the name of a method of all settings; choose another name")
        text = text_of_type(annotation)
        if parent is not None and value is not dataclasses.MISSING:
            if not isinstance(value, dataclasses.Field):
                value = dataclasses.field(default=value, repr=parent.repr, metadata=parent.metadata)
                setattr(cls, name, value)
            if kind is not kind_of(name, parent.type)[0]:
                inherited = text_of_type(parent.type)
                raise wrong(
                    cls,
                    name,
                    f"is annotated as {text}, and as {inherited} in its parent; use the latter",
                )
        if not getattr(value, "metadata", {}).get("help"):
            has_value = not (value is dataclasses.MISSING or isinstance(value, dataclasses.Field))
            shown = repr(value)[:60] if has_value else "default"
            raise wrong(cls, name, f"has no help; write {name}: {text} = setting({shown}, 'Help.')")


def check_class(cls: type) -> None:
    """Verifies that a class is a dataclass with valid defaults; `prepare` runs too early for it."""
    if "_checked" in vars(cls):
        return
    if "__dataclass_fields__" not in vars(cls) and vars(cls).get("__annotations__"):
        raise UserError(
            f"{cls.__name__} is not a dataclass; write @dataclass(frozen=True) above the class"
        )
    for field in dataclasses.fields(cls):
        try:
            checked(field, field.default)
        except UserError as error:
            raise wrong(cls, field.name, f"has a wrong default: {error}") from None
    cls._checked = True  # type: ignore[attr-defined]
