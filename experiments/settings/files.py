"""Settings in files: what a run has written can repeat it."""

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
# What PyYAML raises for texts with the tag of another type, besides its own errors.
_BROKEN = (ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)
# Of one run or one process: the file is to repeat the run into a log folder of its own.
_LEFT_OUT = ("logdir", "parent_run", "run_token")
_OF_ONE_RUN = (*_LEFT_OUT, "run_name")


def text_of(settings: Any) -> str:
    """Returns settings as YAML, without secrets and without what is of one run only."""
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
    """Writes `settings.yaml` into a log folder, for --config; all at once, or not at all."""
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
    """Returns what differs from the `settings.yaml` of a log folder, a line for each setting."""
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
    """Returns the settings, of the class `known`, that a YAML or JSON file gives, by name."""
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
    """Returns the names and plain values in a YAML or JSON file, given by a flag, in order."""
    import yaml

    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # The latter of a NUL in the name.
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
    """Raises a `ValueError` at the first value of several: ten thousand brackets take minutes."""
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
    """Returns the pairs in a JSON or YAML document: a mapping of plain values, nothing nested.

    Nothing else is constructed, so that YAML's aliases cannot multiply.
    """
    import yaml

    if text.lstrip().startswith("{"):
        try:
            pairs = json.loads(text, object_pairs_hook=tuple)
        except json.JSONDecodeError:
            pass  # A mapping of YAML in braces.
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
