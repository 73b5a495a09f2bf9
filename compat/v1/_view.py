"""Provides the names of `compat.v1` and its modules, such as `compat.v1.contrib.slim`."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
from typing import Any, Sequence

from compat.scripts.view import imports, libraries, namespace, python2_builtins

_TOP = "compat.v1."
_PACKAGES = "packages."
_FILES = ("era_0x", "packages", "python2")  # Files of this package.
_SPECIAL = ("__all__", *namespace.VERSIONS)  # Python asks modules for other special names as well.


def __getattr__(name: str) -> Any:
    if name in _FILES or (name[:2] == "__" and name not in _SPECIAL):
        # Python then imports the submodule.
        raise AttributeError(f"module 'compat.v1' has no attribute {name!r}")
    return getattr(namespace.top(), name)


def __dir__() -> list[str]:
    return dir(namespace.top())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules below `compat.v1` that are not files of the package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == "models":  # A module of the program, as under `compat run`.
            return imports.find_common(fullname)
        below = fullname[len(_TOP) :]
        if not fullname.startswith(_TOP) or below in _FILES or below.startswith("_"):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)


class _Loader(importlib.abc.Loader):
    """Creates a module with the names of another one.

    It is a new module object, since Python finds submodules by a module's `__name__`.
    """

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__[len(_TOP) :]
        try:
            shown = _shown(name)
        # Keep the reason in the message; Python would replace it.
        except ModuleNotFoundError as error:
            raise ImportError(str(error), name=module.__name__) from None

        def get(attribute: str) -> Any:
            if attribute == "__all__" and not hasattr(shown, attribute):
                return [known for known in dir(shown) if known[0] != "_"]
            try:
                return getattr(shown, attribute)
            except AttributeError:
                # `import scipy.misc` binds `scipy`.
                if not name.startswith(_PACKAGES) or attribute[0] == "_":
                    raise
            try:
                return _shown(f"{name}.{attribute}")
            except ImportError as error:
                raise AttributeError(str(error)) from None

        module.__dict__.update(__doc__=shown.__doc__, __getattr__=get, __dir__=lambda: dir(shown))


def _shown(name: str) -> Any:
    """Returns the name of the module whose names a module below `compat.v1` provides."""
    if name.startswith(_PACKAGES):
        package = name[len(_PACKAGES) :]
        # Only Python 2 programs import another `pickle`.
        return python2_builtins.PICKLE if package == "pickle" else libraries.module(package)
    full = f"{namespace.TOP}.{name}"
    try:
        return namespace.module(full)
    except ModuleNotFoundError:
        if full in sys.modules:  # `tensorflow.python` of 1.15 also contains Python's `platform`.
            return sys.modules[full]
        raise


def _install() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # If `compat run` runs the program, this has been done already.
    known = set(namespace.when_loaded)
    namespace.when_loaded.extend(name for name in namespace.FOR_SCRIPTS if name not in known)
    sys.meta_path.insert(0, _Finder())


_install()
