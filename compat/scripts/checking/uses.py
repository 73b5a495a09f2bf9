"""Finds where a script uses names of TensorFlow."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple, Union

from compat.scripts.checking.scopes import Scope, below_top, join
from compat.scripts.names import table
from compat.scripts.source import literals

# Errors that a missing name raises.
_MISSING = {"AttributeError", "BaseException", "Exception", "ImportError", "ModuleNotFoundError"}
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]


class Use(NamedTuple):
    """A use of a TensorFlow name in a script."""

    name: str  # Without "tf.", as "train.SummaryWriter".
    spelled: str  # The text in the script, as "tf.train.SummaryWriter".
    node: ast.AST
    part: int  # Index of the part of the program, as given to `Walk.part`.
    guarded: bool  # Whether the program handles the error of a missing name.
    call: ast.Call | None = None  # If the name is called.
    imported: bool = False


class Walk(ast.NodeVisitor):
    """Visits a program in the order of execution: function bodies come after their module."""

    def __init__(self) -> None:
        self._uses: list[Use] = []
        self._scope = Scope()
        self._part = 0
        self._guarded = False
        self._later: list[tuple[int, Scope, list[ast.AST]]] = []

    def part(self, number: int, tree: ast.Module) -> None:
        """Visits a part of the program: a script, or a cell of a notebook."""
        self._part = number
        self._scope.bound.update(_bound(tree.body))
        self.generic_visit(tree)

    def finish(self) -> list[Use]:
        """Visits the function bodies; returns all uses."""
        while self._later:
            self._part, self._scope, body = self._later.pop(0)
            for node in body:
                self.visit(node)
        return self._uses

    def _use(self, name: str, spelled: str, node: ast.AST, **more: Any) -> None:
        self._uses.append(Use(name, spelled, node, self._part, self._guarded, **more))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = below_top(alias.name)
            if name is None:
                continue
            self._scope.bind(alias.asname or "tensorflow", name if alias.asname else "")
            self._use(name, alias.name, _place(alias, node), imported=True)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = below_top(node.module or "") if not node.level else None
        if module is None:
            return
        for alias in node.names:
            if alias.name == "*":
                self._scope.stars.append(module)
                self._use(module, node.module or "", node, imported=True)
            else:
                name = join(module, alias.name)
                self._scope.bind(alias.asname or alias.name, name)
                self._use(name, alias.name, _place(alias, node), imported=True)

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
        name = self._scope.resolve(node)
        if name is None:
            self.generic_visit(node)
        else:
            self._use(name, literals.dotted(node), node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and not self._scope.is_bound(node.id):
            for module in self._scope.starred():
                if join(module, node.id) in table.NAMES:
                    self._use(join(module, node.id), node.id, node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._scope.resolve(node.func)
        if name is None and isinstance(node.func, ast.Name):
            starred = [join(module, node.func.id) for module in self._scope.starred()]
            name = starred[0] if starred and not self._scope.is_bound(node.func.id) else None
        if name:
            self._use(name, literals.dotted(node.func), node.func, call=node)
        whole = self._scope.resolve(node)  # `getattr(tf, "mul")`
        if whole:
            self._use(whole, literals.dotted(node.func), node)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        outer, self._scope = self._scope, Scope(self._scope)
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(statement, outer)  # Names of a class are not visible in its methods.
            else:
                self.visit(statement)
        self._scope = outer

    def visit_FunctionDef(self, node: _Function) -> None:
        self._function(node, self._scope)

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def _function(self, node: _Function, above: Scope) -> None:
        self.visit(node.args)  # Defaults and annotations; the arguments themselves are not uses.
        body = node.body if isinstance(node.body, list) else [node.body]
        if not isinstance(node, ast.Lambda):
            for part in filter(None, [*node.decorator_list, node.returns]):
                self.visit(part)
        inner = Scope(above)
        inner.bound = _bound(body)
        inner.bound.update(c.arg for c in ast.walk(node.args) if isinstance(c, ast.arg))
        for statement in (descendant for child in body for descendant in ast.walk(child)):
            if isinstance(statement, ast.Global):
                inner.outer.update(statement.names)
        self._later.append((self._part, inner, list(body)))


def _takes_missing_names(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_MISSING & literals.identifiers(handler.type))


def _place(alias: ast.alias, statement: ast.AST) -> ast.AST:
    """Returns the node with an imported name's position, which has its own since Python 3.10."""
    return alias if hasattr(alias, "lineno") else statement


def _bound(body: list[ast.stmt] | list[ast.expr]) -> set[str]:
    """Returns the names that statements bind, without those in nested functions and classes."""
    found: set[str] = set()
    rest: list[ast.AST] = list(body)
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)):
            rest.extend(ast.iter_child_nodes(node))
    return found
