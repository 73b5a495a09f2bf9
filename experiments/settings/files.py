"""Writes the settings of a run to a file, and reads them from one, to repeat the run."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from compat.errors import UserError, one_line, reason_of
from compat.tracking import redacted
from compat.tracking.files import write_atomically
from experiments.settings.setting import checked, shortened

FILE = "settings.yaml"
_MOST_BYTES = 100_000
_SHOWN = 160
# Errors of PyYAML, besides its own, for a value that does not fit its tag, such as `!!int x`.
_BROKEN = (ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)
# Settings of one run or one process, which are not written: a repeated run gets a new log folder.
_LEFT_OUT = ("logdir", "parent_run", "run_token")
_OF_ONE_RUN = (*_LEFT_OUT, "run_name")


def text_of(settings: Any) -> str:
    """Returns settings as YAML, without secrets and those of a single run, such as --logdir."""
    import yaml

    kept, secrets = {}, ""
    for field in dataclasses.fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if name in _LEFT_OUT:
            continue
        is_secret = field.metadata["secret"] or redacted({name: value}) != {name: value}
        if value is None or not is_secret:
            kept[name] = value
        else:
            secrets += f"# {name} is a secret, or holds one; give it by --{name}\n"
    return str(yaml.safe_dump(kept, sort_keys=False)) + secrets


def write_settings(settings: Any, logdir: str) -> None:
    """Writes `settings.yaml`, which --config reads, into a log folder; atomically."""
    write_atomically(os.path.join(logdir, FILE), text_of(settings))


def flags_of(settings: Any) -> dict[str, Any]:
    """Returns the settings that a command needs to repeat a run, by name.

    These are all that differ from their defaults, without secrets and without those of a single
    run, such as --logdir.
    """
    given = {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(settings)
        if field.name not in _OF_ONE_RUN and not field.metadata["secret"]
        if getattr(settings, field.name) != field.default
    }
    return {name: value for name, value in given.items() if redacted({name: value})[name] == value}


def changes(settings: Any, logdir: str) -> list[str]:
    """Returns a line for each setting that differs from the `settings.yaml` of a log folder."""
    path = os.path.join(logdir, FILE)
    try:
        before = dict(read_pairs(path))
    except (UserError, TypeError):  # It is not there, or somebody has changed it.
        return []
    now = dict(_parse(text_of(settings)))
    return [
        one_line(f"--{name} is {value}, in the run so far it was {shortened(str(before[name]))}")
        for name, value in now.items()
        if name in before and before[name] != value
    ]


def read_settings(path: str, known: Any) -> dict[str, Any]:
    """Returns the values that a YAML or JSON file gives for settings of the class `known`, by name.

    Raises a `UserError` for a file that cannot be read, and for an unknown or invalid setting.
    """
    fields = {field.name: field for field in dataclasses.fields(known)}
    found: dict[str, Any] = {}
    for name, value in read_pairs(path):
        if name not in fields:
            shown = one_line(shortened(repr(name), _SHOWN))
            raise UserError(
                f"--config={path} has the unknown setting {shown}; --help lists the settings"
            )
        if name in found:
            raise UserError(f"--config={path} has {name} twice; leave one of them out")
        try:
            found[name] = checked(fields[name], value)
        except UserError as error:
            raise UserError(f"--config={path}: {error}") from error
    return found


def read_pairs(path: str, flag: str = "config") -> list[tuple[Any, Any]]:
    """Returns the names and plain values in a YAML or JSON file, in order.

    If it cannot be read, a `UserError` names the flag that gave its path.
    """
    import yaml

    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # A `ValueError` for a NUL in the name.
        raise UserError(
            f"--{flag}={path} cannot be read ({reason_of(error)}); name a file of "
            "settings, such as settings.yaml of a log folder"
        ) from error
    try:
        if len(raw) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES} bytes")
        return _parse(raw.decode("utf-8-sig"))
    except (*_BROKEN, yaml.YAMLError) as error:
        reason = one_line(shortened(" ".join(str(error).split()), _SHOWN))
        raise UserError(
            f"--{flag}={path} is not a file of settings ({reason}); write a line 'name: value' for "
            "each setting, in YAML or JSON"
        ) from error


def _refuse_nested(text: str) -> None:
    """Raises a `ValueError` if YAML text has nested values.

    PyYAML could take minutes to read a file with many of them.
    """
    import yaml

    is_inside = False
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        kind = {yaml.SequenceStartEvent: "sequence", yaml.MappingStartEvent: "mapping"}.get(
            type(event)
        )
        if kind is not None and (is_inside or kind == "sequence"):
            line = event.start_mark.line + 1
            raise ValueError(f"line {line} has a {kind}" if is_inside else f"it holds a {kind}")
        is_inside = is_inside or kind is not None


def _parse(text: str) -> list[tuple[Any, Any]]:
    """Returns the pairs in a JSON or YAML document, which has to be one mapping of plain values.

    A nested value is a `ValueError`, before any value is constructed: by YAML's aliases a few lines
    of nested values can stand for gigabytes.
    """
    import yaml

    if text.lstrip().startswith("{"):
        try:
            pairs = json.loads(text, object_pairs_hook=tuple)
        except json.JSONDecodeError:
            pass  # It may be a YAML mapping in braces.
        else:
            for name, value in pairs:
                if isinstance(value, (tuple, list)):
                    raise ValueError(f"{name} has several values")
            return list(pairs)
    _refuse_nested(text)
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise ValueError(f"it holds a {node.id}")
        construct = loader.construct_object
        return [(construct(name), construct(value)) for name, value in node.value]
    finally:
        loader.dispose()
