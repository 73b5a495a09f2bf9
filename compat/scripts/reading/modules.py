"""Finds the modules of a script itself among those that it imports."""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Callable

from compat.scripts.reading import conversion

_MAIN = re.compile(r"(?m)^if[ \t(]+__name__\b|^[ \t]*tf\.app\.run\(")


def imported(script: str) -> list[str]:
    """Returns the files in a script's folder that it imports, or that one of these imports."""
    root = os.path.dirname(os.path.abspath(script))
    waiting, found = [os.path.abspath(script)], []
    while waiting:
        path = waiting.pop(0)
        if path not in found:
            found.append(path)
            own = [file for node in imports(path) for file in files(node, path, root)]
            waiting += [file for file in own if file.startswith(os.path.join(root, ""))]
    return found[1:]


def is_in_package(path: str) -> bool:
    """Whether a file is a module of a package.

    A script is not, and neither is a module that a script beside it imports, although their folder
    may have an `__init__.py`.
    """
    folder, name = os.path.split(os.path.abspath(path))
    if not (os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.isfile(path)):
        return False
    imports_it = re.compile(rf"(?m)^[ \t]*(?:import|from)[ \t]+{re.escape(name[:-3])}\b")
    beside = [_text(os.path.join(folder, n)) for n in os.listdir(folder) if n.endswith(".py")]
    is_beside_script = any(_MAIN.search(text) and imports_it.search(text) for text in beside)
    return not (_MAIN.search(_text(path)) or is_beside_script)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def files(
    node: Any, path: str, root: str = "", exists: Callable[[str], bool] = os.path.isfile
) -> list[str]:
    """Returns the script's files that the import `node` loads, `__init__.py` too; see `find`."""
    names, level = [alias.name for alias in node.names], getattr(node, "level", 0)
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        names = [module, *(f"{module}.{name}".lstrip(".") for name in names)]
    words = [name.split(".") for name in names if name]
    parents = [".".join(w[:number]) for w in words for number in range(1, len(w) + 1)]
    found = [find(name, path, root, level, exists) for name in dict.fromkeys(parents)]
    return [file for file in found if file]


def find(
    name: str,
    path: str,
    root: str = "",
    level: int = 0,
    exists: Callable[[str], bool] = os.path.isfile,
) -> str:
    """Returns the file of a module, or "" if it is none of the script's own.

    Args:
      name: the name of the module, such as "models.cnn".
      path: the file that imports it; its folder, `root` and its package's folder are searched.
      root: the folder of the script.
      level: the number of dots in front of the name.
      exists: returns whether there is a file.
    """
    here = os.path.dirname(os.path.abspath(path))
    folders = [os.path.join(here, *[os.pardir] * (level - 1))] if level else [here, root or here]
    top, parts = name.partition(".")[0], here.split(os.sep)
    # The folder of the package that has the file. In a copy of TensorFlow's source, `tensorflow`
    # means the installed package.
    if not level and top in parts[1:] and top != "tensorflow":
        while parts.pop() != top:
            pass
        folders.append(os.sep.join(parts) or os.sep)
    for folder in folders:
        file = os.path.normpath(os.path.join(folder, *name.split(".")))
        for found in (f"{file}.py", os.path.join(file, "__init__.py")):
            if exists(found):
                return found
    return ""


def imports(path: str) -> list[Any]:
    """Returns the import statements of a script; [] if it cannot be read."""
    nodes = [node for source in conversion.readable(path) for node in ast.walk(source.tree())]
    return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


def parts(script: str) -> list[conversion.Source]:
    """Returns the parts of the modules of a script, without those that cannot be read."""
    return [source for path in imported(script) for source in conversion.readable(path)]
