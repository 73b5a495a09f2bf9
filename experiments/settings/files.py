"""Settings in files: what a run has written can repeat it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import yaml

from compat.errors import UserError, one_line
from compat.tracking import redacted_text
from compat.tracking.files import write_atomically

FILE = "settings.yaml"
_MOST_BYTES = 1_000_000
# Of one process or one run: the file is to repeat a run into a log folder of its own.
_LEFT_OUT = ("logdir", "parent_run", "run_token")


def text_of(settings: Any) -> str:
    """Returns settings as YAML, without secrets and without what is of one run only."""
    found = {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(settings)
        if not field.metadata["secret"] and field.name not in _LEFT_OUT
    }
    kept = {
        name: value
        for name, value in found.items()
        if not isinstance(value, str) or redacted_text(value) == value
    }
    return str(yaml.safe_dump(kept, sort_keys=False, allow_unicode=True))


def write_settings(settings: Any, logdir: str) -> None:
    """Writes `settings.yaml` into a log folder, for --config; all at once, or not at all.

    Raises:
      OSError: it cannot be written.
    """
    write_atomically(os.path.join(logdir, FILE), text_of(settings))


def read_settings(path: str, known: Any) -> dict[str, Any]:
    """Returns the settings that a file gives, by name.

    Args:
      path: of a YAML or JSON file with a mapping of settings.
      known: the settings class.

    Raises:
      UserError: the file cannot be read, is not such a mapping, or names an unknown setting.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES} bytes")
        text = raw.decode("utf-8")
        if any(token.__class__.__name__ == "AliasToken" for token in yaml.scan(text)):
            raise ValueError("it has aliases")
        found = yaml.safe_load(text)
    except OSError as error:
        raise UserError(
            f"--config={path} cannot be read ({error.strerror}); name a file of settings, such as "
            "a log folder's settings.yaml"
        ) from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        reason = one_line(" ".join(str(error).split()))[:200]
        raise UserError(
            f"--config={path} is not YAML or JSON ({reason}); write a line 'name: value' for each "
            "setting"
        ) from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UserError(
            f"--config={path} holds {type(found).__name__}, not a mapping; write a line "
            "'name: value' for each setting"
        )
    names = {field.name for field in dataclasses.fields(known)}
    for name in found:
        if name not in names:
            raise UserError(
                f"--config={path} has the unknown setting {one_line(str(name))!r}; --help lists "
                "the settings"
            )
    return found
