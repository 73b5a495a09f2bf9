"""Functions of a program, written where they are called."""

from __future__ import annotations

import ast
import builtins
from typing import Any, Callable, Collection, Mapping, NamedTuple

from compat.scripts.migrating.steps import conditions, order
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.rules.program import LOOSE, Edit, Program, UnmarkedError
from compat.scripts.source import scopes

_ROUNDS = 200  # A call in each.
_COMPOUND = (ast.While, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef)
_LEAVES = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


class Function(NamedTuple):
    """A function that a program calls."""

    path: str  # By which it is called, such as "model.training".
    node: Any  # Its definition.
    tf: str  # The name of TensorFlow.
    owner: str = ""  # An object of the program that it uses.
    methods: Collection[str] = ()  # What the methods of that are called by, as "model.step".
    is_method: bool = False  # Whether it is one, and the object its first parameter.


class _NotPlainError(Exception):
    """A function is not written where it is called."""


def inlined(
    program: Program,
    tf: str,
    wanted: Callable[[Program, Function], bool],
    others: Callable[[Program], list[Function]] = lambda program: [],
) -> Program:
    """Returns a program with the functions that are `wanted` in place of their calls.

    The methods of an object are what `others` returns. A function that returns elsewhere than at
    its end stays as it is. Conditions on arguments that are constants are decided.
    """
    for _ in range(_ROUNDS):
        before = program
        for function in [*own(program, tf), *others(program)]:
            if wanted(program, function):
                try:
                    edits = _Inlining(program, function).edits()
                except (_NotPlainError, UnmarkedError):
                    continue
                if edits:
                    program = program.after(edits)
                    break
        if program is before:
            break
    return program


def own(program: Program, tf: str) -> list[Function]:
    """Returns the functions of a program, each of which has a name of its own."""
    parents = program.parents
    nodes = [n for n in program.nodes(ast.FunctionDef) if not isinstance(parents[n], ast.ClassDef)]
    names = [node.name for node in nodes]
    return [Function(n.name, n, tf) for n in nodes if names.count(n.name) == 1]


def calls(program: Program, function: Function) -> list[ast.Call]:
    """Returns the calls of a function."""
    found = program.nodes(ast.Call)
    return [call for call in found if _spelled(call.func) == function.path.split(".")]


class _Inlining:
    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.parents = program.parents
        node = function.node
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if node.decorator_list or any(isinstance(n, _LEAVES) for n in scopes.own_nodes(body)):
            raise _NotPlainError
        lines = [s.lineno for s in [node, *body]]
        if len({*lines}) < len(lines) and not isinstance(body[0], ast.Return):
            raise _NotPlainError  # Statements share a line.
        self.body = body

    def edits(self) -> list[Edit]:
        """Returns the edits that replace a call, and remove the function with the last one."""
        found = sorted(calls(self.program, self.function), key=order.place)
        for call in filter(self._is_wanted, found):
            try:
                edits = self._call(call)
            except (_NotPlainError, UnmarkedError):
                continue
            if len(found) == 1:
                scope = self.program.enclosing(self.function.node)
                uses = scopes.uses(scope, {self.function.path})
                edits += (
                    [Pieces(self.program).removed(self.function.node)] if len(uses) == 1 else []
                )
            return edits
        return []

    def _is_wanted(self, call: ast.Call) -> bool:
        """Whether a call is one of a method, or is given the object that a function uses."""
        owner = self.function.owner
        given = [*call.args, *(word.value for word in call.keywords)]
        is_method = self.function.path.startswith(f"{owner}.")
        return not owner or is_method or any(getattr(n, "id", "") == owner for n in given)

    def _call(self, call: ast.Call) -> list[Edit]:  # noqa: C901
        """Returns the edits that put the function's statements in front of its call."""
        statement: Any = call
        is_elsewhere = False
        while not isinstance(statement, ast.stmt):
            statement = self.parents[statement]
            is_elsewhere = is_elsewhere or isinstance(statement, order.ELSEWHERE)
        given = self._given(call)
        stored = order.stored(self.body)
        constants = conditions.known({n: v for n, v in given.items() if n not in stored})
        body = conditions.decided(self.body, constants)
        returns = [n for n in scopes.own_nodes(body) if isinstance(n, ast.Return)]
        if len(returns) > 1 or (returns and body[-1] is not returns[0]):
            raise _NotPlainError
        returned: Any = returns[0].value if returns else None
        body = body[:-1] if returns else body
        pairs = self._pairs(call, statement, given, returned)
        bound = scopes.bound(body)
        targets = _renamed(pairs, bound)
        new, first, taken = self._names(call, given, body, returned, targets)
        text = self._text(returned, new) if returned is not None else ""
        is_whole = getattr(statement, "value", None) is call
        text = text if is_whole or "\n" in text else _enclosed(returned, text)
        own = {*given, *self._self()}
        if text and not (body or first or pairs):
            if is_elsewhere and not (order.is_simple(returned) and used(returned) <= own):
                raise _NotPlainError
            return [Edit(*self.program.span(call), text)]
        alone = Pieces(self.program).alone(statement)
        is_plain = not (is_elsewhere or isinstance(statement, _COMPOUND))
        if not is_plain or alone is None or Pieces(self.program).text(statement)[:4] == "elif":
            raise _NotPlainError
        line, after = alone
        indent = self.program.text[line : self.program.span(statement)[0]]
        front = self.program, call, statement, body, self.function
        if self.function.owner and not order.may_be_in_front(*front):
            raise _NotPlainError
        is_late = order.is_late([*body, *returns], {*given, *bound}, statement, self.parents)
        if self.function.owner and is_late:
            raise _NotPlainError
        edits = [
            Edit(*self.program.span(name), new[name.id])
            for name in scopes.uses(self.function.node, set(new))
            if any(name in ast.walk(s) for s in body)
        ]
        inner = [n for s in body for n in ast.walk(s) if isinstance(n, ast.FunctionDef)]
        pieces = Pieces(self.program)
        edits += [pieces.renamed(n, new[n.name]) for n in inner if n.name in new]
        lines = "".join(f"{indent}{text}\n" for text in first)
        lines += pieces.take(body, edits, indent)
        if pairs:
            left = [(name, value) for name, value in pairs if name not in targets.values()]
            lines += "".join(f"{indent}{n} = {self._text(v, new)}\n" for n, v in left)
            return [Edit(line, after, lines)]
        if isinstance(statement, ast.Expr) and is_whole:
            runs = any(isinstance(n, ast.Call) for n in ast.walk(returned)) if text else False
            lines += f"{indent}{text}\n" if runs else ""
            return [Edit(line, after, lines or f"{indent}pass\n")]
        if not text:
            raise _NotPlainError
        if self.function.owner and not is_whole:
            # What is evaluated behind it may be in front by now.
            name = scopes.free(self.function.node.name.strip("_"), taken)
            lines, text = f"{lines}{indent}{name} = {text}\n", name
        return [Edit(line, line, lines), Edit(*self.program.span(call), text)]

    def _pairs(
        self, call: ast.Call, statement: Any, given: dict[str, Any], returned: Any
    ) -> list[tuple[str, Any]]:
        """Returns the names that a statement assigns, unless used, with what they are given."""
        targets = getattr(statement, "targets", [])
        if len(targets) != 1 or getattr(statement, "value", None) is not call or returned is None:
            return []
        values = returned.elts if isinstance(returned, ast.Tuple) else [returned]
        names = _words(targets[0])
        arguments = {n.id for v in given.values() for n in ast.walk(v) if isinstance(n, ast.Name)}
        arguments |= used(self.function.node) - scopes.bound(self.body) - set(given)
        is_plain = len(values) == len({*names} - {""} - arguments) == len(names)
        return [*zip(names, values)] if is_plain else []

    def _self(self) -> list[str]:
        """Returns the parameter that is the object of a method."""
        return [a.arg for a in self.function.node.args.args[:1] if self.function.is_method]

    def _given(self, call: ast.Call) -> dict[str, Any]:
        """Returns the arguments by the names of the parameters."""
        arguments = self.function.node.args
        names = [argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]]
        names = names[len(self._self()) :]
        is_plain = not (arguments.vararg or arguments.kwarg)
        stars = [a for a in call.args if isinstance(a, ast.Starred)]
        given: dict[str, Any] = dict(zip(names[::-1], arguments.defaults[::-1]))
        if arguments.kwonlyargs or getattr(arguments, "posonlyargs", []):
            raise _NotPlainError
        given.update(zip(names, call.args))
        given.update((str(word.arg), word.value) for word in call.keywords)
        if stars or not is_plain or set(given) != set(names) or len(call.args) > len(names):
            raise _NotPlainError
        return given

    def _names(
        self, call: ast.Call, given: dict[str, Any], body: Any, returned: Any, targets: Any
    ) -> tuple[dict[str, str], list[str], set[str]]:
        """Returns new names of the function's own, lines that set parameters, all names taken."""
        scope: Any = self.program.enclosing(call)
        own = [s for s in scope.body if s is not self.function.node]
        taken = scopes.bound([*own, *self.program.tree.body])
        taken |= {n.id for n in scopes.own_nodes(own) if isinstance(n, ast.Name)}
        taken |= set() if isinstance(scope, ast.Module) else scopes.parameters(scope)
        taken.discard("_")
        stored, local = order.stored(body), scopes.bound(body)
        arguments = {name: self._argument(call, node) for name, node in given.items()}
        new, first = dict(targets), {}
        new.update((name, self.function.owner) for name in self._self())
        nodes = [n for s in body for n in ast.walk(s) if not isinstance(n, ast.FunctionDef)]
        renamed = {n.name for n in nodes if hasattr(n, "name")}
        for name in sorted(stored | local | set(given)):
            place = name, body, self.function.methods
            if name in given and order.may_replace(given[name], *place):
                new[name] = arguments[name]
                continue
            if name not in targets:
                others = taken.union(new.values(), stored, local)
                new[name] = scopes.free(name, others) if name in taken else name
            if name in given:
                first[name] = f"{new[name]} = {arguments[name]}"
            if new[name] != name and name in renamed:
                raise _NotPlainError  # An import or a class of its own.
        self._check_free_names(scope, new, [*body, *([returned] if returned else [])])
        # In the order in which the call evaluates them.
        places = {n: order.place(given[n]) if given[n] in ast.walk(call) else (0, 0) for n in first}
        lines = [first[name] for name in sorted(first, key=places.__getitem__)]
        changed = {name: word for name, word in new.items() if name != word}
        return changed, lines, {*taken, *new.values()}

    def _check_free_names(self, scope: Any, new: dict[str, str], body: Any) -> None:
        """Raises an error if a name of the module is another one where it is called."""
        names = {n for node in body for n in ast.walk(node) if isinstance(n, ast.Name)}
        uses = scopes.uses(self.function.node, {n.id for n in names})
        is_module = isinstance(scope, ast.Module)
        own = set() if is_module else scopes.bound(scope.body) | scopes.parameters(scope)
        for name in {n.id for n in uses if n in names} - set(new) - set(dir(builtins)):
            if name in own and self.function.node not in ast.walk(scope):
                raise _NotPlainError  # The caller's own variable of this name is another one.

    def _argument(self, call: ast.Call, node: Any) -> str:
        if node in ast.walk(call):
            return self.program.expression(node)
        return self._text(node, {})  # A default.

    def _text(self, node: Any, new: Mapping[str, str]) -> str:
        """Returns the text of an expression of the function with new names."""
        inner = {n for n in ast.walk(node) if isinstance(n, ast.Name)}
        uses = [n for n in scopes.uses(self.function.node, set(new)) if n in inner]
        edits = [Edit(*self.program.span(name), new[name.id]) for name in uses]
        text = self.program.edited(edits, self.program.span(node))
        return _enclosed(node, text) if "\n" in text else text


def _enclosed(node: Any, text: str) -> str:
    return f"({text})" if isinstance(node, LOOSE) else text


def _words(node: Any) -> list[str]:
    """Returns the names in a tuple of names, or the one."""
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return [element.id if isinstance(element, ast.Name) else "" for element in elements]


def _spelled(node: Any) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [*_spelled(node.value), node.attr]
    return _words(node)


def _renamed(pairs: list[tuple[str, Any]], local: set[str]) -> dict[str, str]:
    """Returns the new names of variables that a function returns for one name alone."""
    words = [value.id for _, value in pairs if isinstance(value, ast.Name)]
    own = {word for word in words if words.count(word) == 1 and word in local}
    return {v.id: name for name, v in pairs if isinstance(v, ast.Name) and v.id in own}
