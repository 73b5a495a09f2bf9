"""Finds where a script uses names of TensorFlow, and of other packages that have changed."""

from __future__ import annotations

import ast
from typing import AbstractSet, Any, NamedTuple, Union

from compat.scripts.names import packages, table
from compat.scripts.reading import literals, scopes

_TOP = "tensorflow"
_TOPS = {_TOP, *packages.PACKAGES}
# Errors that a missing name raises.
_MISSING = {"AttributeError", "BaseException", "Exception", "ImportError", "ModuleNotFoundError"}
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]


class Use(NamedTuple):
    """A use of a name of TensorFlow, or of another package, in a script."""

    name: str  # Without "tf.", as "train.SummaryWriter"; of another package in full.
    spelled: str  # The text in the script, as "tf.train.SummaryWriter".
    node: ast.AST
    guarded: bool  # Whether the program handles the error of a missing name.
    call: ast.Call | None = None  # If the name is called.
    imported: bool = False
    is_tensorflow: bool = True


class _Scope:
    """The names of a module, a class or a function, which hide those of an outer scope.

    An alias of a TensorFlow name stays one after `except ImportError: slim = None`.
    """

    def __init__(self, above: _Scope | None = None) -> None:
        self.stars: list[str] = []  # Modules of TensorFlow imported with `*`.
        self.bound: set[str] = set()  # Local names that hide outer ones.
        self.outer: set[str] = set()  # Names declared `global`.
        self._aliases: dict[str, str] = {}  # Full names of imported objects, by local name.
        self._above = above

    def bind(self, name: str, meaning: str) -> None:
        """Makes `name` an alias of the imported object with the full name `meaning`."""
        scope = self
        while name in self.outer and scope._above is not None:
            scope = scope._above
        if _is_inside(meaning) or not _is_inside(scope._aliases.get(name, "")):
            scope._aliases[name] = meaning

    def find(self, name: str) -> str | None:
        """Returns the full name, such as "tensorflow.contrib", of a local alias, or None."""
        scope: _Scope | None = self
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
        """Returns the full name of the imported object that an expression means, or None."""
        if isinstance(node, ast.Name):
            return self.find(node.id)
        owner, name = None, ""
        if isinstance(node, ast.Attribute):
            owner, name = self.resolve(node.value), node.attr
        elif isinstance(node, ast.Call) and node.args:
            function = literals.dotted(node.func)
            if function in ("__import__", "import_module", "importlib.import_module"):
                return literals.text(node.args[0]) or None
            if function == "getattr" and len(node.args) > 1:
                owner, name = self.resolve(node.args[0]), literals.text(node.args[1])
        return f"{owner}.{name}" if owner and name else None


class Walk(ast.NodeVisitor):
    """Visits a program in the order of execution: function bodies come after their module.

    Attributes:
      modules: all modules that it imports.
      meanings: the full name of the imported object that a node means, by node.
    """

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.meanings: dict[ast.AST, str] = {}
        self._uses: list[Use] = []
        self._scope = _Scope()
        self._guarded = False
        self._later: list[tuple[_Scope, list[ast.AST]]] = []

    def part(self, tree: ast.Module) -> None:
        """Visits a part of the program: a script, or a cell of a notebook."""
        self._scope.bound.update(scopes.bound(tree.body))
        self.generic_visit(tree)

    def finish(self) -> list[Use]:
        """Visits the bodies of functions; returns all uses."""
        while self._later:
            self._scope, body = self._later.pop(0)
            for node in body:
                self.visit(node)
        return self._uses

    def _use(self, full: str, spelled: str, node: ast.AST, **more: Any) -> None:
        is_tf = _is_inside(full, {_TOP})
        name = full[len(_TOP) + 1 :] if is_tf else full
        self._uses.append(Use(name, spelled, node, self._guarded, is_tensorflow=is_tf, **more))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.modules.add(alias.name)
            self._scope.bind(alias.asname or top, alias.name if alias.asname else top)
            if _is_inside(alias.name):
                self._use(alias.name, alias.name, _place(alias, node), imported=True)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            return
        self.modules.add(module)
        for alias in node.names:
            full, spelled, place = f"{module}.{alias.name}", alias.name, _place(alias, node)
            if alias.name != "*":
                self._scope.bind(alias.asname or alias.name, full)
            else:
                full, spelled, place = module, module, node
                if _is_inside(module, {_TOP}):
                    self._scope.stars.append(module)
            if _is_inside(module):
                self._use(full, spelled, place, imported=True)

    def visit_Try(self, node: ast.Try) -> None:
        before = self._guarded
        self._guarded = before or any(map(_takes_missing_names, node.handlers))
        for statement in node.body:
            self.visit(statement)
        self._guarded = before
        for part in [*node.handlers, *node.orelse, *node.finalbody]:
            self.visit(part)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            pairs: list[tuple[ast.AST, ast.AST]] = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts))
            for left, right in pairs:
                meaning = self._scope.resolve(right)
                if isinstance(left, ast.Name) and meaning is not None:
                    self._scope.bind(left.id, meaning)
            self.visit(target)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        full = self._scope.resolve(node)
        if full is not None:
            self.meanings[node] = full
        if full is None or not _is_inside(full):
            self.generic_visit(node)
        else:
            self._use(full, literals.dotted(node), node)

    def visit_Name(self, node: ast.Name) -> None:
        meaning = self._scope.find(node.id)
        if meaning is not None:
            self.meanings[node] = meaning
        if isinstance(node.ctx, ast.Load) and not self._scope.is_bound(node.id):
            for full in [f"{module}.{node.id}" for module in self._scope.starred()]:
                if table.plain(full[len(_TOP) + 1 :]) in table.NAMES:
                    self._use(full, node.id, node)

    def visit_Call(self, node: ast.Call) -> None:
        full = self._scope.resolve(node.func)
        if full is None and isinstance(node.func, ast.Name):
            starred = self._scope.starred()
            if starred and not self._scope.is_bound(node.func.id):
                full = f"{starred[0]}.{node.func.id}"
        if full and _is_inside(full) and full not in _TOPS:
            self._use(full, literals.dotted(node.func), node.func, call=node)
        whole = self._scope.resolve(node)  # `getattr(tf, "mul")`
        if whole and _is_inside(whole) and whole not in _TOPS:
            self._use(whole, literals.dotted(node.func), node)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        outer, self._scope = self._scope, _Scope(self._scope)
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(statement, outer)  # Names of a class are not visible in its methods.
            else:
                self.visit(statement)
        self._scope = outer

    def visit_FunctionDef(self, node: _Function) -> None:
        self._function(node, self._scope)

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def _function(self, node: _Function, above: _Scope) -> None:
        self.visit(node.args)  # Defaults and annotations; the arguments themselves are not uses.
        body = node.body if isinstance(node.body, list) else [node.body]
        if not isinstance(node, ast.Lambda):
            for part in filter(None, [*node.decorator_list, node.returns]):
                self.visit(part)
        inner = _Scope(above)
        inner.bound = scopes.bound(body) | scopes.parameters(node)
        for statement in (descendant for child in body for descendant in ast.walk(child)):
            if isinstance(statement, ast.Global):
                inner.outer.update(statement.names)
        self._later.append((inner, list(body)))


def _is_inside(module: str, tops: AbstractSet[str] = frozenset(_TOPS)) -> bool:
    return module.partition(".")[0] in tops


def _takes_missing_names(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_MISSING & literals.identifiers(handler.type))


def _place(alias: ast.alias, statement: ast.AST) -> ast.AST:
    """Returns the node that has an imported name's position: before Python 3.10, the statement."""
    return alias if hasattr(alias, "lineno") else statement
