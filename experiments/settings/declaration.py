"""Verifies the declaration of a settings class: help, types and names of its fields.

Example:
  >>> @dataclass(frozen=True)
  ... class Mine(Settings):
  ...     hidden: int = 16
  UserError: setting 'hidden' of Mine has no help; write hidden: int = setting(16, 'Help.')
"""

from __future__ import annotations

import dataclasses
from typing import Any

from compat.errors import UserError
from experiments.settings.setting import checked, kind_of

ALLOW_NETWORK = (
    "Let tasks be on other machines: everyone who reaches their ports can run code there."
)
# Flags that are about this process only, or about the flags.
PROCESS_FLAGS = frozenset(
    ["job_name", "task_index", "ps_hosts", "worker_hosts", "parameter_servers", "workers"]
    + ["config", "print_config", "preset"]
)


def prepare(cls: type, base: type) -> None:
    """Verifies the fields that a class declares itself, and completes those it declares again.

    A field of a parent that is declared again with a value keeps its help, bounds and group. To be
    called before the decorator `dataclass` reads the class.

    Args:
      cls: the class.
      base: that of all settings.

    Raises:
      UserError: a field has no help, an unsupported type, or a name that is taken.
    """
    known = getattr(cls, "__dataclass_fields__", {})  # Those of its parents.
    annotations = cls.__dict__.get("__annotations__", {})
    for name, value in list(vars(cls).items()):
        is_setting = isinstance(value, dataclasses.Field)
        if (is_setting or name in known) and name not in annotations:
            raise UserError(
                f"setting {name!r} of {cls.__name__} has no type; write {name}: int = ..., or "
                "another type"
            )
    for name, annotation in annotations.items():
        if "ClassVar" in str(annotation):
            continue
        value = vars(cls).get(name, dataclasses.MISSING)
        if name in PROCESS_FLAGS:
            raise UserError(
                f"setting {name!r} of {cls.__name__} has the name of a flag of each process; "
                "choose another name"
            )
        if name not in known and hasattr(base, name):
            raise UserError(
                f"setting {name!r} of {cls.__name__} has the name of a method of all settings; "
                "choose another name"
            )
        if name in known and value is not dataclasses.MISSING:
            if not isinstance(value, dataclasses.Field):
                parent = known[name]
                value = dataclasses.field(default=value, repr=parent.repr, metadata=parent.metadata)
                setattr(cls, name, value)
            _check_same_type(cls, name, annotation, known[name])
        if not getattr(value, "metadata", {}).get("help"):
            shown = "default" if value is dataclasses.MISSING else repr(value)[:60]
            shown = "default" if isinstance(value, dataclasses.Field) else shown
            raise UserError(
                f"setting {name!r} of {cls.__name__} has no help; write "
                f"{name}: {_text(annotation)} = setting({shown}, 'Help.')"
            )
        kind_of(name, annotation)


def _check_same_type(cls: type, name: str, annotation: Any, parent: Any) -> None:
    if kind_of(name, annotation)[0] is not kind_of(name, parent.type)[0]:
        raise UserError(
            f"setting {name!r} of {cls.__name__} is annotated as {_text(annotation)}, and as "
            f"{_text(parent.type)} in its parent; use the latter"
        )


def check_class(cls: type) -> None:
    """Verifies what `prepare` cannot yet: that the class is a dataclass, and its defaults valid.

    Raises:
      UserError: not so.
    """
    if "_checked" in vars(cls):
        return
    if "__dataclass_fields__" not in vars(cls) and cls.__dict__.get("__annotations__"):
        raise UserError(
            f"{cls.__name__} is not a dataclass; write @dataclass(frozen=True) above the class"
        )
    for field in dataclasses.fields(cls):
        checked(field, field.default)
    cls._checked = True  # type: ignore[attr-defined]


def _text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
