"""Functions of Python's library as they were until Python 3.11, or in Python 2, for scripts.

The functions of the module `imp`, which Python 3.12 removed, load a script's files as an import
does under `compat run`.
"""

from __future__ import annotations

import collections
import inspect
import os
import random
import sys
import types
from importlib import machinery, util
from typing import Any

from compat.scripts.view.python2_builtins import classic_reload as reload  # noqa: F401

maketrans, new_module = str.maketrans, types.ModuleType
_Spec = collections.namedtuple("_Spec", "args varargs keywords defaults")


def getargspec(function: Any) -> Any:
    """Returns the arguments of a function: `(args, varargs, keywords, defaults)`."""
    return _Spec(*inspect.getfullargspec(function)[:4])


def dist(*args: Any, **kwargs: Any) -> tuple[str, str, str]:
    """Returns the name, version and code name of this system, as far as they are known."""
    try:
        with open("/etc/os-release", encoding="utf-8") as lines:
            fields = dict(line.strip().split("=", 1) for line in lines if "=" in line)
    except OSError:
        fields = {}
    name, version, code = (fields.get(f) for f in ("NAME", "VERSION_ID", "VERSION_CODENAME"))
    return tuple((field or "").strip('"') for field in (name, version, code))  # type: ignore[return-value]


def random_sample(population: Any, k: int, **options: Any) -> list[Any]:
    """Accepts sets and dictionary views as well."""
    is_sequence = hasattr(population, "__getitem__") and not isinstance(population, dict)
    return random.sample(population if is_sequence else list(population), k, **options)


def random_shuffle(x: Any, random: Any = None) -> None:
    """Shuffles in place; accepts a function that returns random numbers in [0, 1)."""
    if random is None:
        return _SHUFFLE(x)
    for i in reversed(range(1, len(x))):
        j = int(random() * (i + 1))
        x[i], x[j] = x[j], x[i]
    return None


_SHUFFLE = random.shuffle


def setdefaultencoding(name: str) -> None:
    """Does nothing: Python 3 decodes as UTF-8."""


def yaml_load(stream: Any, Loader: Any = None) -> Any:  # noqa: N803 (PyYAML's name)
    """Loads YAML; the default loader accepts plain values and Python's own types."""
    import yaml

    return yaml.load(stream, Loader or yaml.FullLoader)  # noqa: S506 (as PyYAML 5.1)


string_atof, string_atoi = float, int


def string_join(words: Any, sep: str = " ") -> str:
    """Returns the words joined to one string."""
    return sep.join(words)


string_capitalize, string_swapcase, string_translate = str.capitalize, str.swapcase, str.translate
string_center, string_ljust, string_rjust, string_zfill = (
    str.center,
    str.ljust,
    str.rjust,
    str.zfill,
)
string_count, string_expandtabs, string_index = str.count, str.expandtabs, str.index
string_find, string_lower, string_upper = str.find, str.lower, str.upper
string_rfind, string_rindex = str.rfind, str.rindex
string_lstrip, string_rstrip, string_strip = str.lstrip, str.rstrip, str.strip
string_replace, string_split = str.replace, str.split


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Loads a module from a file of any name; raises ImportError."""
    del file
    folder, base = os.path.split(os.path.abspath(pathname))
    stem = base.rpartition(".")[0]
    # The finder of `compat run` comes first, and finds only files of the script.
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
    """Loads a module from the results of `find_module`."""
    del description
    if file is not None:
        file.close()
    return load_source(name, pathname)
