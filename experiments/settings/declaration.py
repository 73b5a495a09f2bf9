"""Verifies the declaration of a settings class: help, types and names of its fields.

Example:
  >>> @dataclass(frozen=True)
  ... class Mine(Settings):
  ...     hidden: int = 16
  UserError: setting 'hidden' of Mine has no help; write hidden: int = setting(16, 'Help.')
"""

from __future__ import annotations

import dataclasses

from compat.errors import UserError
from experiments.settings.setting import checked, kind_of, text_of_type

# Flags that are about this process only, or about the flags.
PROCESS_FLAGS = frozenset(
    ["job_name", "task_index", "ps_hosts", "worker_hosts", "parameter_servers", "workers"]
    + ["config", "print_config", "preset"]
)


def wrong(cls: type, name: str, reason: str) -> UserError:
    """Returns the error of one setting of a class."""
    return UserError(f"setting {name!r} of {cls.__name__} {reason}")


def prepare(cls: type, base: type) -> None:
    """Verifies the fields that a class declares itself, and completes those it declares again.

    A field of a parent that is declared again with a value keeps its help, bounds and group. To be
    called before the decorator `dataclass` reads the class. `base` is that of all settings.
    """
    known = getattr(cls, "__dataclass_fields__", {})  # Those of its parents.
    annotations = vars(cls).get("__annotations__", {})
    for name, value in vars(cls).items():
        if (isinstance(value, dataclasses.Field) or name in known) and name not in annotations:
            raise wrong(cls, name, f"has no type; write {name}: int = ..., or another type")
    for name, annotation in annotations.items():
        if "ClassVar" in str(annotation):
            continue
        value = vars(cls).get(name, dataclasses.MISSING)
        parent = known.get(name)
        if name in PROCESS_FLAGS:
            raise wrong(cls, name, "has the name of a flag of each process; choose another name")
        if parent is None and hasattr(base, name):
            raise wrong(cls, name, "has the name of a method of all settings; choose another name")
        text = text_of_type(annotation)
        if parent is not None and value is not dataclasses.MISSING:
            if not isinstance(value, dataclasses.Field):
                value = dataclasses.field(default=value, repr=parent.repr, metadata=parent.metadata)
                setattr(cls, name, value)
            if kind_of(name, annotation)[0] is not kind_of(name, parent.type)[0]:
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
        kind_of(name, annotation)


def check_class(cls: type) -> None:
    """Verifies what `prepare` cannot yet: that the class is a dataclass, and its defaults valid."""
    if "_checked" in vars(cls):
        return
    if "__dataclass_fields__" not in vars(cls) and vars(cls).get("__annotations__"):
        raise UserError(
            f"{cls.__name__} is not a dataclass; write @dataclass(frozen=True) above the class"
        )
    for field in dataclasses.fields(cls):
        checked(field, field.default)
    cls._checked = True  # type: ignore[attr-defined]
