"""Provides Python's library, NumPy and other packages with the names that they once had.

The modules of the script see views of these packages; all other modules see the packages
themselves.
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
    """Raised for the import of a removed name that has no replacement."""


class OldLibrary(types.ModuleType):
    """A module with its old names; assignments to attributes change the module of today."""

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
            # Store the value, so that the next lookup does not call this method.
            vars(self)[attribute] = value
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
# Replacements from these packages are used even if the module still has the name.
_BEFORE = ("compat.", "tf_keras.")
# Attributes of the module itself; the view has its own.
_HOOKS = {"__all__", "__dir__", "__getattr__"}


def _public(name: str, real: Any) -> list[str]:
    """Returns the names that `from NAME import *` imports, without those that are builtins."""
    names = getattr(real, "__all__", [key for key in vars(real) if not key.startswith("_")])
    gone = {key: packages.GONE[f"{name}.{key}"].by for key in _gone(name)}
    known = {*names, *(key for key in gone if _has(name, real, key))}
    return sorted(key for key in known if not gone.get(key, "").startswith("builtins:"))


def _gone(module: str) -> set[str]:
    """Returns the names that were removed from a module, without those of its submodules."""
    names = (key.rpartition(".") for key in packages.GONE)
    return {name for owner, _, name in names if owner == module}


def _has(name: str, real: Any, attribute: str) -> bool:
    try:
        _look_up(f"{name}.{attribute}", real, True)
    except (AttributeError, ImportError):
        return False
    return True


def _look_up(name: str, real: Any, replaced: bool) -> Any:
    """Returns the object that a script sees as `name`.

    `real` is the installed module that is searched; `replaced` is whether `real` replaces the
    module that the script names.
    """
    parent, _, last = name.rpartition(".")
    entry = packages.GONE.get(name)
    if entry is not None and (replaced or parent not in packages.GONE or last not in vars(real)):
        if not entry.by and last not in vars(real):
            raise MissingName(_missing(name, entry))
        if entry.by.endswith(":"):
            return module(name)
        value: Any = _load(entry.by) if entry.by else None
        if value is not None:
            return value
    changed = packages.CHANGED.get(name)
    value = _load(changed) if changed else getattr(real, last)
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
    """Returns the object that replaces a name, or None if the installed package has none."""
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
    """Returns a function or class that accepts the arguments of an old release.

    Args:
      function: The function or class of today.
      renamed: The new names of arguments by their old ones; "" for arguments without effect.
      order: The names of the positional arguments, separated by spaces, for arguments that are
        keyword-only today.
      values: The new names of values by their old ones, by the name of the argument.
    """
    names = order.split()
    try:
        accepted = inspect.signature(function).parameters
    except ValueError:  # A builtin function has no signature.
        accepted = {}  # type: ignore[assignment]
    most = sum(parameter.kind <= parameter.POSITIONAL_OR_KEYWORD for parameter in accepted.values())

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if names:
            kwargs.update(zip(names[most:], args[most:]))
            args = args[:most]
        for name in values.keys() & kwargs.keys():
            argument = kwargs[name]
            kwargs[name] = (
                values[name].get(argument, argument) if isinstance(argument, str) else argument
            )
        for old in renamed.keys() & kwargs.keys() - accepted.keys():
            value = kwargs.pop(old)
            if renamed[old]:
                kwargs.setdefault(renamed[old], value)
        return function(*args, **kwargs)

    return _class(function, call) if isinstance(function, type) else call


def _class(today: Any, call: Callable[..., Any]) -> Any:
    """Returns a class whose calls use `call`; its objects are of the class `today`."""

    class Worded(type(today)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs) if cls is kind else super().__call__(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return (
                isinstance(instance, today) if cls is kind else super().__instancecheck__(instance)
            )

    kind: Any = Worded(today.__name__, (today,), {"__module__": today.__module__})
    return kind


def is_old(name: str) -> bool:
    """Returns whether a module is in a package that has old names."""
    return name.partition(".")[0] in packages.PACKAGES


def load(name: str, fromlist: Sequence[str]) -> Any:
    """Returns the module that `import NAME`, or `from NAME import FROMLIST`, binds in a script."""
    top = module(name)
    for attribute in fromlist:
        if attribute == "*":
            continue
        try:
            getattr(top, attribute)
        except MissingName as error:
            raise MissingImport(str(error)) from None
        except AttributeError:
            if hasattr(top, "__path__"):
                _import_if_there(f"{top.__name__}.{attribute}")
    return top if fromlist else module(name.partition(".")[0])


def _import_if_there(name: str) -> None:
    try:
        module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise  # The failed import is one inside the module.


def _first(places: Sequence[str]) -> Any:
    """Returns the first of some modules that can be imported; else raises the last error."""
    for place in places:
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if place == places[-1] or not f"{place}.".startswith(f"{error.name}."):
                raise  # The failed import is one inside the module.
    raise ImportError(f"no module to import among {places}")


@functools.lru_cache(maxsize=None)
def module(name: str) -> Any:
    """Returns a module, or a view of it if it has old names; raises ImportError."""
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
