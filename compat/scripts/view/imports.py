"""Gives the modules of a script their own `import`, without changing it for any other module.

`import tensorflow` in a module of the script returns the module that the script expects, while
installed packages import the real one. The builtins of the script's modules make the difference.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any, Sequence

from compat.scripts.reading import conversion
from compat.scripts.view import (
    array_builtins,
    frame_builtins,
    libraries,
    namespace,
    python2_builtins,
)

_ROOT = str(Path(__file__).resolve().parents[3])
# Computed once, early: Python 3.13 computes it by imports, which would call our finder.
_PYTHONS = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
_OURS = [os.path.join(_ROOT, package) for package in ("compat", "experiments", "models")]
_INSTALLED = tuple(os.path.realpath(folder) + os.sep for folder in _PYTHONS + _OURS)
# Packages beside this one; scripts have folders with the same names.
_COMMON = ("experiments", "models")


def _builtins_for(part: conversion.Source) -> dict[str, Any]:
    names = {**vars(builtins), **array_builtins.BUILTINS, **frame_builtins.BUILTINS}
    is_relative = not part.has_absolute_imports
    if part.python2:
        names.update(python2_builtins.BUILTINS)

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        top = name.partition(".")[0]
        if level == 0 and part.python2 and is_relative and _has(globals, top):
            level = 1
        if level == 0:
            if top == namespace.TOP:
                return _import_tensorflow(name, fromlist or ())
            if part.python2 and name in ("cPickle", "pickle"):
                return python2_builtins.PICKLE
            if libraries.is_old(name):
                return libraries.load(name, fromlist or ())
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        # As in Python 2, a module without absolute imports also imports from its own package.
        except ModuleNotFoundError as error:
            if level or error.name != top or not is_relative or not _has(globals, top):
                raise
            return builtins.__import__(name, globals, locals, fromlist or (), 1)

    names["__import__"] = import_
    return names


def _has(importer: Any, name: str) -> bool:
    """Returns whether the package of a module, given by its globals, has a module `name`."""
    package = (importer or {}).get("__package__")
    full = f"{package}.{name}"
    return bool(package) and (full in sys.modules or importlib.util.find_spec(full) is not None)


def _import_tensorflow(name: str, fromlist: Sequence[str]) -> Any:
    module = namespace.module(name)
    if not fromlist:
        return namespace.top()
    for attribute in fromlist:
        if attribute != "*":
            try:
                getattr(module, attribute)
            except namespace.MissingName as error:
                raise ImportError(str(error), name=f"{name}.{attribute}") from None
            except AttributeError:
                pass  # Python reports the error, with the line of the script.
    return module


def _is_of_script(path: str) -> bool:
    """Returns whether a file belongs to the script, not to Python or an installed package."""
    path = os.path.realpath(path)
    is_package = {"site-packages", "dist-packages"} & set(path.split(os.sep))
    return not is_package and not path.startswith(_INSTALLED)


def find_common(name: str) -> importlib.machinery.ModuleSpec | None:
    """Returns the spec of the script's package `name`, if one of our packages has the same name.

    Returns None for other names. Without this, Python would import ours if the script's is a folder
    without `__init__.py`, since it prefers a package with that file anywhere on its path.
    """
    if name not in _COMMON:
        return None
    root = os.path.realpath(_ROOT)
    others = [place for place in sys.path if os.path.realpath(place or os.getcwd()) != root]
    return importlib.machinery.PathFinder.find_spec(name, others)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules and packages that belong to the script, for `Loader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = find_common(fullname) if path is None else None
        if spec is not None and spec.loader is None:
            return spec  # The module is a folder without `__init__.py`.
        spec = spec or importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return None
        if not _is_of_script(spec.origin):
            return None
        spec.loader = Loader(spec.origin)
        return spec


class Loader(importlib.abc.Loader):
    """Loads one module of the script."""

    def __init__(self, path: str) -> None:
        self._path = path

    def exec_module(self, module: types.ModuleType) -> None:
        for part in conversion.read(self._path):
            run(part, module)

    def get_filename(self, name: str) -> str:
        return self._path

    def get_source(self, name: str) -> str:  # `inspect` calls this method.
        return conversion.read(self._path)[0].text

    def is_package(self, name: str) -> bool:
        return os.path.basename(self._path) == "__init__.py"


def run(part: conversion.Source, module: types.ModuleType) -> None:
    """Runs one part of the script's text in one of its modules."""
    code = part.code()
    module.__dict__["__builtins__"] = _builtins_for(part)
    exec(code, module.__dict__)  # noqa: S102 - To run the script is what the user asked for.


def install() -> None:
    """Makes Python load the script's own modules with `Loader` from now on."""
    sys.meta_path.insert(0, Finder())
