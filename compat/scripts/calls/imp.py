"""The module `imp`, which Python 3.12 removed; its files are the script's own."""

from __future__ import annotations

import os
import sys
import types
from importlib import machinery, util
from typing import Any

from compat.scripts.source.python2_builtins import classic_reload as reload

__all__ = ["find_module", "load_module", "load_source", "new_module", "reload"]

new_module = types.ModuleType


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Loads a module from a file, whatever its name; raises ImportError."""
    del file
    folder, base = os.path.split(os.path.abspath(pathname))
    stem = base.rpartition(".")[0]
    # The finder of `compat run` comes first, and knows only files of the script.
    finders: list[Any] = [*sys.meta_path[:1], machinery.PathFinder]
    specs = (finder.find_spec(stem, [folder]) for finder in finders)
    spec = next((spec for spec in specs if spec is not None), None)
    if spec is None:
        spec = util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python module in {pathname}", name=name)
    module = types.ModuleType(name)
    module.__file__ = pathname
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find_module(name: str, path: Any = None) -> tuple[Any, str, tuple[str, str, int]]:
    """Returns an open file, its path and its kind; raises ImportError."""
    spec = machinery.PathFinder.find_spec(name, path)
    if spec is None or not spec.origin:
        raise ImportError(f"No module named {name!r}", name=name)
    return open(spec.origin, encoding="utf-8"), spec.origin, (".py", "r", 1)


def load_module(name: str, file: Any, pathname: str, description: Any) -> types.ModuleType:
    """Loads what `find_module` has found."""
    del description
    if file is not None:
        file.close()
    return load_source(name, pathname)
