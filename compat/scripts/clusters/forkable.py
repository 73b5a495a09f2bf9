"""Decides from its source whether a program may be forked after TensorFlow has been loaded."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Sequence

from compat.errors import UserError
from compat.processes.forking import read_early
from compat.scripts.reading import conversion, literals

# These packages set no variables that TensorFlow reads at import.
_OURS = {"compat", "experiments"}
# Packages that import TensorFlow.
_LOADING = {"keras", "tensorflow", "tf_keras", "tf_slim", *_OURS}
_INSTALLED = {"dist-packages", "site-packages"}
_ENVIRONMENTS = {"environ", "environb", "putenv", "unsetenv"}
_READING = {"get", "copy", "items", "keys", "values"}


@dataclass(frozen=True)
class Survey:
    """A program that uses TensorFlow and may be forked."""

    # The first part of each imported module's name, without modules of the program.
    imports: set[str]
    # Environment variables that the program sets before it imports TensorFlow, if the import reads
    # them.
    env: dict[str, str]


def survey(path: str) -> Survey | None:
    """Decides whether a program may be forked after TensorFlow has been loaded; runs nothing.

    Reads the program's script, and those of its modules that it imports.

    Returns:
      A `Survey` if the program may be forked. None if each process must start its own Python:
      the program does not import TensorFlow, cannot be read, or sets an environment variable that
      TensorFlow reads at import. Constants that it sets before that import are allowed;
      `Survey.env` holds them.
    """
    main = Path(path).resolve()
    root = next(folder for folder in main.parents if not (folder / "__init__.py").exists())
    package = main.relative_to(root).parts[0]

    def folders(name: str) -> list[Path]:
        """Returns the folders that would contain a module of the program with this first name."""
        return [
            folder
            for folder in (main.parent, root)
            if name not in _LOADING and (folder.name not in _INSTALLED or name == package)
        ]

    imports: set[str] = set()
    env: dict[str, str] = {}
    waiting = [main, *(folder / "__init__.py" for folder in main.parents if root in folder.parents)]
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        try:
            trees = [part.tree() for part in conversion.read(str(file))]
        except (SyntaxError, UserError):
            return None  # The program itself reports it.
        for tree in trees:
            constants: set[ast.AST] = set()
            for statement in tree.body if file == main else ():
                imported = list(_imported(statement, file, folders))
                if any(files or name in _LOADING for name, files in imported):
                    break
                constants.update(_constants(statement, env))
            if not _sets_only(tree, constants):
                return None
            for name, files in _imported(tree, file, folders):
                waiting += files
                imports.update(() if files else (name,))
    return Survey(imports, read_early(env)) if imports & _LOADING else None


def _imported(
    tree: ast.AST, file: Path, folders: Callable[[str], Sequence[Path]]
) -> Iterator[tuple[str, list[Path]]]:
    """Yields, for each import, the first part of the name and the program's files that it loads."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        names, level = [alias.name for alias in node.names], 0
        if isinstance(node, ast.ImportFrom):
            names, level = [f"{node.module or ''}.{name}".lstrip(".") for name in names], node.level
        for words in (name.split(".") for name in names):
            files = [
                place.joinpath(*words[:end], *last).with_suffix(".py")
                for place in (list(file.parents)[level - 1 : level] if level else folders(words[0]))
                for end in range(1, len(words) + 1)
                for last in ((), ("__init__",))
            ]
            yield words[0], [path for path in files if path.is_file()]


def _constants(statement: ast.stmt, env: dict[str, str]) -> Iterator[ast.AST]:
    """Adds to `env` the variable that a statement sets to a constant.

    Such statements are `os.environ[NAME] = VALUE` and `os.environ.setdefault(NAME, VALUE)`. Yields
    the node `os.environ` of the statement, since this use is no reason to start a new Python.
    """
    place: ast.AST | None = None
    name = value = ""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            place, name = target.value, literals.text(target.slice)
            value = literals.text(statement.value)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        is_default = literals.dotted(call.func).endswith(".setdefault") and len(call.args) == 2
        if is_default and isinstance(call.func, ast.Attribute):
            place, (name, value) = call.func.value, map(literals.text, call.args)
            value = env.get(name) or os.environ.get(name) or value
    if place is not None and _is_environment(place) and name and value:
        env[name] = value
        yield place


def _sets_only(tree: ast.AST, known: set[ast.AST]) -> bool:
    """Returns whether all uses of `os.environ`, except those in `known`, set only late variables.

    A late variable is one that TensorFlow does not read at import.
    """
    fine = set(known)
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Load) or _is_late(node.slice):
                fine.add(node.value)
        elif isinstance(node, ast.Compare):
            fine.update(node.comparators)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_late = node.func.attr in _READING or (node.args and _is_late(node.args[0]))
            fine.update([node.func.value] if is_late else [])
    return fine.issuperset(node for node in nodes if _is_environment(node))


def _is_environment(node: ast.AST) -> bool:
    return literals.dotted(node).rpartition(".")[2] in _ENVIRONMENTS


def _is_late(name: ast.AST) -> bool:
    return bool(literals.text(name)) and not read_early({literals.text(name): ""})
