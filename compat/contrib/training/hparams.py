"""`tf.contrib.training.HParams`: hyperparameters that can be parsed from text or JSON."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, Iterator, Mapping

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.]*)(\[(?P<index>\d+)\])?\s*=\s*"
    r"((?P<list>\[[^\]]*\])|(?P<value>[^,\[]*))\s*(,|$)"
)
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def _as(kind: type, value: Any, name: str) -> Any:
    if isinstance(value, str) and kind in (bool, int, float):
        with contextlib.suppress(KeyError, ValueError):
            return _BOOLS[value.lower()] if kind is bool else kind(value)
    elif value is None or kind is type(None) or isinstance(value, kind):
        return int(value) if kind is int and isinstance(value, bool) else value
    elif kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    elif kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    elif kind is str:
        return str(value)
    raise ValueError(f"Could not parse hparam {name}={value!r}: expected {kind.__name__}")


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Returns the values in text such as "rate=0.1,sizes=[1,2],names[1]=b".

    Args:
      values: The text.
      type_map: The type of each name; for a list, the type of its elements.
      ignore_unknown: Whether to skip unknown names.

    Returns:
      For each name a value, a list, or a dict of values by index.

    Raises:
      ValueError: If the text cannot be parsed, or a name in it is unknown or occurs twice.
    """
    parsed: dict[str, Any] = {}
    for name, index, value in _assignments(values):
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        new = [_as(kind, v, name) for v in value] if _is_list(value) else _as(kind, value, name)
        known: Any = parsed.setdefault(name, {}) if index is not None else parsed
        key: Any = name if index is None else index
        if not isinstance(known, dict) or key in known:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        known[key] = new
    return parsed


def _assignments(text: str) -> Iterator[tuple[str, int | None, Any]]:
    """Yields the name, the index (None without one) and the value of each assignment.

    A value is text; a list in brackets is a list of texts.
    """
    start = 0
    while start < len(text):
        match = _ASSIGNMENT.match(text, start)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {text[start:]}")
        start = match.end()
        value: Any = (match["value"] or "").strip()
        if match["list"] is not None:
            words = [word.strip() for word in match["list"][1:-1].split(",")]
            value = [word for word in words if word]
        yield match["name"], int(match["index"]) if match["index"] else None, value


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


class HParams:
    """Hyperparameters as attributes; each keeps the type of its initial value."""

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        self._types: dict[str, tuple[type, bool]] = {}  # The bool: whether it is a list.
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter of the type of `value`; a list must not be empty."""
        if getattr(self, name, None) is not None or name in self._types:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = _is_list(value)
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._types[name] = (type(value[0]) if is_list else type(value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets an existing hyperparameter, converted to its type."""
        kind, is_list = self._types[name]
        if is_list != _is_list(value):
            raise ValueError(f"hparam {name} is {'' if is_list else 'not '}a list, got {value!r}")
        new = [_as(kind, each, name) for each in value] if is_list else _as(kind, value, name)
        setattr(self, name, new)

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if it exists."""
        if self._types.pop(name, None):
            delattr(self, name)

    def parse(self, values: str) -> HParams:
        """Sets hyperparameters from text such as "rate=0.1,sizes=[1,2],sizes[0]=3"."""
        for name, index, value in _assignments(values):
            if name not in self._types:
                raise ValueError(f"Unknown hyperparameter: {name}")
            if index is not None:
                changed = list(getattr(self, name))
                changed[index] = value
                self.set_hparam(name, changed)
            else:
                is_one = self._types[name][1] and not _is_list(value)
                self.set_hparam(name, [value] if is_one else value)
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets hyperparameters from a mapping."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse_json(self, values_json: str) -> HParams:
        """Sets hyperparameters from a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, **options: Any) -> str:
        """Returns the hyperparameters as a JSON object; accepts the options of `json.dumps`."""
        return json.dumps(self.values(), **options)

    def values(self) -> dict[str, Any]:
        """Returns the hyperparameters by name."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a hyperparameter, or a default if it does not exist."""
        return getattr(self, key) if key in self._types else default

    def get_model_structure(self) -> Any:
        return self._model_structure

    def set_model_structure(self, model_structure: Any) -> None:
        self._model_structure = model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({self})"
