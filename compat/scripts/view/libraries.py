"""Provides Python's library, NumPy and other packages with the names that they once had.

The script's own modules see views; all other modules see the packages as they are.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from typing import Any, Callable, Sequence

from compat.scripts.names import package_names, packages
from compat.scripts.names.table import Served
from compat.scripts.view import namespace
from compat.scripts.view.namespace import MissingName


class MissingImport(ImportError):
    """Raised for the import of a name that is gone, and that nothing serves."""


class OldLibrary(types.ModuleType):
    """A module with its old names; what is set on it is set on the module of today."""

    def __init__(self, name: str, real: Any, replaced: bool) -> None:
        super().__init__(name, real.__doc__)
        if name not in _CHANGING:
            for key, value in vars(real).items():
                if f"{name}.{key}" not in _CHANGED and key not in _HOOKS and not _is_old(value):
                    vars(self)[key] = value
        vars(self).update(__name__=name, _name=name, _real=real, _replaced=replaced)

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "__all__":
            return _public(self._name, self._real)
        value = _look_up(f"{self._name}.{attribute}", self._real, self._replaced)
        if self._name not in _CHANGING:
            vars(self)[attribute] = value  # The next lookup does not come here.
        return value

    def __setattr__(self, attribute: str, value: Any) -> None:
        if self._name not in _CHANGING:
            vars(self)[attribute] = value
        setattr(self._real, attribute, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._real), *_gone(self._name)})


# Modules whose attributes change while a program runs.
_CHANGING = {"sys"}
_REWORDED = {*packages.ARGUMENTS, *packages.POSITIONS, *packages.VALUES}
_CHANGED = {*packages.GONE, *packages.CHANGED, *_REWORDED, *packages.MODULES}
_BEFORE = ("compat.", "tf_keras.")  # What serves a module even if it is still there.
_HOOKS = {"__all__", "__dir__", "__getattr__"}  # Of the module itself; the view has its own.


def _public(name: str, real: Any) -> list[str]:
    """Returns what `from NAME import *` imports, which is none of Python's own types."""
    own = getattr(real, "__all__", [key for key in vars(real) if not key.startswith("_")])
    gone = {key: packages.GONE[f"{name}.{key}"].by for key in _gone(name)}
    known = {*own, *(key for key in gone if _has(name, real, key))}
    return sorted(key for key in known if not gone.get(key, "").startswith("builtins:"))


def _gone(module: str) -> set[str]:
    """Returns the names that are gone from a module, without those of modules below."""
    names = (key.rpartition(".") for key in packages.GONE)
    return {name for owner, _, name in names if owner == module}


def _has(name: str, real: Any, attribute: str) -> bool:
    try:
        _look_up(f"{name}.{attribute}", real, True)
    except (AttributeError, ImportError):
        return False
    return True


def _look_up(name: str, real: Any, replaced: bool) -> Any:
    """Returns what a name stands for in a script; `real` is today's parent module."""
    parent, _, last = name.rpartition(".")
    entry = packages.GONE.get(name)
    if entry is not None and (replaced or parent not in packages.GONE or last not in vars(real)):
        if not entry.by and last not in vars(real):
            raise MissingName(_missing(name, entry))
        if entry.by.endswith(":"):
            return module(name)
        value = _load(entry.by) if entry.by else None
        if value is not None:
            return value
    if name in packages.CHANGED:
        return _load(packages.CHANGED[name])
    value = getattr(real, last)
    if name in _REWORDED:
        renamed, order = packages.ARGUMENTS.get(name, {}), packages.POSITIONS.get(name, "")
        return with_arguments(value, renamed, order, packages.VALUES.get(name, {}))
    if name in packages.MODULES and isinstance(value, types.ModuleType):
        return module(name)
    return module(value.__name__) if _is_old(value) else value


def _is_old(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__ in packages.MODULES


def _missing(name: str, entry: Served) -> str:
    return f"{name} is gone since {entry.gone}: {entry.note}"


def _load(by: str) -> Any | None:
    """Returns the object that serves a name, or None if this release of the package has none."""
    place, _, attribute = by.partition(":")
    try:
        return getattr(importlib.import_module(place), attribute)
    except (AttributeError, ImportError):
        return None


def with_arguments(
    function: Any,
    renamed: Any,
    order: str = "",
    values: Any = {},  # noqa: B006 - Read alone.
) -> Callable[..., Any]:
    """Returns a function or class that takes the arguments that it once took.

    Args:
      function: of today.
      renamed: their new names by the old ones, or "" for those without effect.
      order: the names of those by position, separated by spaces, where some are by name only today.
      values: by the name of an argument, what its old values are called today.
    """
    names = order.split()
    try:
        accepted = inspect.signature(function).parameters
    except ValueError:  # Of a builtin function.
        accepted = {}  # type: ignore[assignment]
    most = sum(parameter.kind <= parameter.POSITIONAL_OR_KEYWORD for parameter in accepted.values())

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if names:
            kwargs.update(zip(names[most:], args[most:]))
            args = args[:most]
        for name in values.keys() & kwargs.keys():
            given = kwargs[name]
            kwargs[name] = values[name].get(given, given) if isinstance(given, str) else given
        for old in renamed.keys() & kwargs.keys() - accepted.keys():
            value = kwargs.pop(old)
            if renamed[old]:
                kwargs.setdefault(renamed[old], value)
        return function(*args, **kwargs)

    return _class(function, call) if isinstance(function, type) else call


def _class(today: Any, call: Callable[..., Any]) -> Any:
    """Returns a class of which `call` makes the objects, which are of the class of today."""

    class Worded(type(today)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs) if cls is made else super().__call__(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return (
                isinstance(instance, today) if cls is made else super().__instancecheck__(instance)
            )

    made: Any = Worded(today.__name__, (today,), {"__module__": today.__module__})
    return made


def is_old(name: str) -> bool:
    """Whether a module is in a package that has old names."""
    return name.partition(".")[0] in packages.PACKAGES


def load(name: str, fromlist: Sequence[str]) -> Any:
    """Returns what `import NAME`, or `from NAME import FROMLIST`, gives a script."""
    found = module(name)
    for attribute in fromlist:
        if attribute == "*":
            continue
        try:
            getattr(found, attribute)
        except MissingName as error:
            raise MissingImport(str(error)) from None
        except AttributeError:
            if hasattr(found, "__path__"):
                _import_if_there(f"{found.__name__}.{attribute}")
    return found if fromlist else module(name.partition(".")[0])


def _import_if_there(name: str) -> None:
    try:
        module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise  # Of a module that it imports.


def _first(places: Sequence[str]) -> Any:
    """Returns the first of some modules that is there; raises the last one's ImportError."""
    for place in places:
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if place == places[-1] or not f"{place}.".startswith(f"{error.name}."):
                raise  # Of a module that it imports.
    raise ImportError(f"no module to import among {places}")


@functools.lru_cache(maxsize=None)
def module(name: str) -> Any:
    """Returns a module, or a view of it if it had other names; raises ImportError."""
    parent, _, last = name.rpartition(".")
    entry = packages.GONE.get(name)
    above: Any = module(parent) if parent else None
    place = f"{getattr(above, '_real', above).__name__}.{last}" if parent else name
    if entry is not None and not entry.by and entry.note:
        raise MissingImport(_missing(name, entry))
    if name in package_names.ON_TENSORFLOW:
        namespace.top()
    places = [place, entry.by.rstrip(":")] if entry is not None else [place]
    if places[-1].startswith(_BEFORE):
        places.reverse()
    real = _first(places)
    replaced = real.__name__ != place
    if name in package_names.PREPARED:
        importlib.import_module(package_names.PREPARED[name]).install()
    if name in packages.MODULES:
        return OldLibrary(name, real, replaced)
    return module(real.__name__) if _is_old(real) else real
