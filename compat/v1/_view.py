"""Serves the names of `compat.v1` and its modules, such as `compat.v1.contrib.slim`."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
from typing import Any, Sequence

from compat.scripts import imports
from compat.scripts.names import namespace

_TOP = "compat.v1"
_FILES = ("era_0x", "python2")  # Of this package.
_SPECIAL = ("__all__", "__version__")  # Python asks modules for others as well.


def __getattr__(name: str) -> Any:
    if name in _FILES or name in imports.VIEWED or (name[:2] == "__" and name not in _SPECIAL):
        raise AttributeError(f"module {_TOP!r} has no attribute {name!r}")  # Python imports it.
    return getattr(namespace.top(), name)


def __dir__() -> list[str]:
    return dir(namespace.top())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules below `compat.v1` that are not files of the package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        below = fullname[len(_TOP) + 1 :]
        if not fullname.startswith(_TOP + ".") or below in _FILES or below.startswith("_"):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)


class _Loader(importlib.abc.Loader):
    """Makes a module show the names of the one that it stands for.

    It is a module of its own, since Python looks for submodules by a module's `__name__`.
    """

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        shown = imports.module(name[len(_TOP) + 1 :], name)

        def get(attribute: str) -> Any:
            if attribute == "__all__" and not hasattr(shown, attribute):
                return [known for known in dir(shown) if known[0] != "_"]
            return getattr(shown, attribute)

        module.__dict__.update(__doc__=shown.__doc__, __getattr__=get, __dir__=lambda: dir(shown))


def _install() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Not twice, where `compat run` runs the program.
    known = set(namespace.when_loaded)
    namespace.when_loaded.extend(name for name in namespace.FOR_SCRIPTS if name not in known)
    sys.meta_path.insert(0, _Finder())


_install()
