"""Resolves local names of a program to names of TensorFlow.

A name of TensorFlow is written here without "tensorflow.": `tf.contrib.slim` is "contrib.slim",
and TensorFlow itself is "".
"""

from __future__ import annotations

import ast

from compat.scripts.source import literals

_TOP = "tensorflow"


def below_top(module: str) -> str | None:
    """Returns "contrib.slim" for "tensorflow.contrib.slim"; None for other modules."""
    if module == _TOP:
        return ""
    return module[len(_TOP) + 1 :] if module.startswith(_TOP + ".") else None


def join(module: str, name: str) -> str:
    """Returns `name` of `module`, which may be TensorFlow itself."""
    return f"{module}.{name}" if module else name


class Scope:
    """The names of a module, a class or a function.

    An alias of a TensorFlow name stays one if it is also bound to something else, as in
    `except ImportError: slim = None`. Names of an inner scope hide those of an outer scope.
    """

    def __init__(self, above: Scope | None = None) -> None:
        self.stars: list[str] = []  # Modules of TensorFlow imported with `*`.
        self.bound: set[str] = set()  # Local names that hide outer ones.
        self.outer: set[str] = set()  # Names declared `global`.
        self._aliases: dict[str, str] = {}  # TensorFlow names by local name.
        self._above = above

    def bind(self, name: str, meaning: str) -> None:
        """Adds an alias of a TensorFlow name."""
        scope = self
        while name in self.outer and scope._above is not None:
            scope = scope._above
        scope._aliases[name] = meaning

    def find(self, name: str) -> str | None:
        """Returns the TensorFlow name of a local name, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._aliases:
                return scope._aliases[name]
            if name in scope.bound - scope.outer:
                return None
            scope = scope._above
        return None

    def starred(self) -> list[str]:
        """Returns the modules whose names are all visible here."""
        return self.stars + (self._above.starred() if self._above is not None else [])

    def is_bound(self, name: str) -> bool:
        """Whether the script itself binds a name."""
        return name in self.bound or (self._above is not None and self._above.is_bound(name))

    def resolve(self, node: ast.AST) -> str | None:
        """Returns the TensorFlow name of an expression, or None."""
        if isinstance(node, ast.Name):
            return self.find(node.id)
        if isinstance(node, ast.Attribute):
            module = self.resolve(node.value)
            return None if module is None else join(module, node.attr)
        if isinstance(node, ast.Call) and node.args:
            function = literals.dotted(node.func)
            if function in ("__import__", "import_module", "importlib.import_module"):
                return below_top(literals.text(node.args[0]))
            if function == "getattr" and len(node.args) > 1 and literals.text(node.args[1]):
                module = self.resolve(node.args[0])
                return None if module is None else join(module, literals.text(node.args[1]))
        return None
