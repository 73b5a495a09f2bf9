"""Members of a class that become plainer: constants of its name, properties that it makes once."""

from __future__ import annotations

import ast
import re
from typing import Any, NoReturn

from compat.scripts.migrating.classes.decorators import (
    Decorator,
    decorator,
    doubles,
    without_unused,
)
from compat.scripts.migrating.steps import order
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.rules.program import Edit, Program, RefusedError
from compat.scripts.source import literals, scopes

# What is evaluated later, several times, or perhaps not.
_SOMETIMES = (
    *(ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp),
    *(ast.GeneratorExp, ast.If, ast.For, ast.While, ast.Try, ast.FunctionDef),
)


def straight(program: Program, name: str) -> Program:
    """Returns a program whose class `name` has neither, or raises `UserError`.

    A constant that is read as `Model.SIZE` becomes one of the program. A property that stores what
    it returns becomes a method, which is called where the property is first read.
    """
    for found in (_Constants, _Once):
        program = program.after(found(program, name).edits())
    return without_unused(program)


def refused(program: Program, name: str, node: ast.AST, why: str) -> NoReturn:
    """Raises a `UserError` for a class."""
    what = f"the class {name} cannot be written as plain statements, since {why}"
    raise RefusedError(program, node, f"{what}; use --to=v1, or write it plainly")


def taken(program: Program, without: Any = ()) -> set[str]:
    """Returns all names of a program, `without` those of some nodes."""
    nodes = [n for n in ast.walk(program.tree) if n not in without]
    found = {n.arg for n in nodes if isinstance(n, ast.arg)}
    found |= {n.id for n in nodes if isinstance(n, ast.Name)}
    found |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return found | scopes.bound(program.nodes(ast.Import, ast.ImportFrom))


class _Members:
    """A class of a program.

    Attributes:
      methods: by their names.
      owners: what is, in the program, the class, or an object of it.
    """

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name, self.pieces = program, name, Pieces(program)
        self.node: Any = [n for n in program.nodes(ast.ClassDef) if n.name == name][-1]
        self.parents = program.parents
        self.inside = {*ast.walk(self.node)}
        self.methods = {n.name: n for n in self.node.body if isinstance(n, ast.FunctionDef)}
        self.owners = {n for n in program.nodes(ast.Name) if n.id == name}
        for method in self.methods.values():
            self.owners.update(scopes.uses(method, {a.arg for a in method.args.args[:1]}))
        assigned = program.nodes(ast.Assign)
        calls = [s for s in assigned if isinstance(s.value, ast.Call)]
        self.objects = [s for s in calls if literals.dotted(s.value.func) == name]
        for made in self.objects:
            scope = program.enclosing(made)
            self.owners.update(scopes.uses(scope, scopes.bound(made.targets)))

    def attributes(self, names: Any) -> list[Any]:
        """Returns the attributes of the class or an object with these names, in their order."""
        found = [n for n in self.program.nodes(ast.Attribute) if n.value in self.owners]
        return sorted((n for n in found if n.attr in names), key=order.place)


class _Constants(_Members):
    """The constants that a program reads as those of the class."""

    def edits(self) -> list[Edit]:
        """Returns the edits that make them constants of the program."""
        made = [s for s in self.node.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
        constants = {getattr(s.targets[0], "id", ""): s for s in made}
        by_class = [n for n in self.attributes(constants) if n.value.id == self.name]
        wanted = {n.attr for n in by_class}
        for name in [*constants][::-1]:  # A later one may need an earlier one.
            wanted |= used(constants[name].value) & {*constants} if name in wanted else set()
        own: list[Any] = [n for s in made for n in ast.walk(s)]
        own += [n for m in self.methods.values() for d in m.args.defaults for n in ast.walk(d)]
        own = [n for n in own if getattr(n, "id", "") in wanted]
        words = {name: scopes.free(name, taken(self.program, {*own})) for name in wanted}
        places = self.attributes(wanted)
        for node in places:
            if not isinstance(node.ctx, ast.Load):
                refused(self.program, self.name, node, f"its constant {node.attr} is set")
        edits = [Edit(*self.program.span(n), words[n.attr]) for n in places]
        edits += [Edit(*self.program.span(n), words[n.id]) for n in own]
        moved = [s for name, s in constants.items() if name in wanted]
        lines = self.pieces.take(moved, edits, "")
        spans = [self.pieces.lines(s) for s in moved]
        edits = [e for e in edits if not any(a <= e.start < b for a, b in spans)]
        start = self.pieces.lines(self.node)[0]
        first = [Edit(start, start, f"{lines}\n\n")] if moved else []
        return [*first, *edits, *(Edit(*span, "") for span in spans)]


class _Once(_Members):
    """The properties that are made where they are first read, and then stored."""

    def __init__(self, program: Program, name: str) -> None:
        super().__init__(program, name)
        functions = [n for n in program.tree.body if isinstance(n, ast.FunctionDef)]
        known = {n.name: decorator(n) for n in functions}
        double = {n.name for n in functions if doubles(n)}
        self.kinds: dict[str, tuple[Any, Decorator]] = {}  # Of properties: as it is used, and is.
        for method in self.methods.values():
            node: Any = [*method.decorator_list, method][0]
            found = known.get(literals.dotted(getattr(node, "func", node)))
            if found is not None and len(method.decorator_list) == 1:
                own = {literals.dotted(n) for n in found.node.decorator_list}
                if own <= double and (own or not isinstance(node, ast.Call)):
                    self.kinds[method.name] = node, found
        words = {n.attr for n in program.nodes(ast.Attribute)} | {*self.methods}
        self.new = {name: scopes.free(f"make_{name}", words) for name in self.kinds}
        self.made: list[str] = []
        self.visited: set[Any] = set()
        self.front: dict[Any, str] = {}  # What is in front of statements.
        for name, (_, kind) in self.kinds.items():
            if kind.prefix + name in words:
                self._refuse(self.methods[name], f"{kind.prefix}{name} is used")

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        refused(self.program, self.name, node, why)

    def edits(self) -> list[Edit]:
        """Returns the edits that make them methods, and call these."""
        if not self.kinds:
            return []
        first = self.methods.get("__init__")
        if first is None or isinstance(first.body[-1], ast.Return):
            self._refuse(self.node, "its properties are first read behind its constructor")
        self._visit(first)
        tail = ""
        for node in self._later():
            self._check_fixed(node)
            tail += "" if node.attr in self.made else self._make(node.attr, first, first.body[-1])
        for node in self.attributes(self.kinds):
            if node.attr not in self.made and not self._is_in(node, self.kinds):
                why = f"its property {node.attr} is first read in another function than its object"
                self._refuse(node, f"{why} is made in")
        text, span = self.program.text, self.program.span
        end = (text + "\n").index("\n", span(first.body[-1])[1]) + 1
        edits = [Edit(end, end, tail)]
        for statement, lines in self.front.items():
            alone = self.pieces.alone(statement)
            if alone is None:
                self._refuse(statement, "a line has several statements")
            value = statement.value if isinstance(statement, ast.Expr) else None
            is_read = isinstance(value, ast.Attribute) and value.attr in self.kinds
            edits.append(Edit(alone[0], alone[1 if is_read else 0], lines))
        for name, (node, _) in self.kinds.items():
            method = self.methods[name]
            if name in self.made:
                start, end = span(node)
                line, end = text.rfind("\n", 0, start) + 1, text.index("\n", end) + 1
                word = re.compile(r"\bdef\s+(\w+)").search(text, end)
                edits += [Edit(line, end, ""), Edit(*word.span(1), self.new[name])] if word else []
            else:
                edits.append(Edit(*self.pieces.lines(method), ""))
        return edits

    def _is_in(self, node: Any, names: Any) -> bool:
        """Whether a node is in one of some methods."""
        return any(node in ast.walk(self.methods[name]) for name in names)

    def _later(self) -> list[Any]:
        """Returns the reads of properties that are not made yet, where the object is made."""
        home = {self.program.enclosing(made) for made in self.objects}
        found = [n for n in self.attributes(self.kinds) if n.attr not in self.made]
        return [n for n in found if self.program.enclosing(n) in home]

    def _check_fixed(self, read: Any) -> None:
        """Raises a `UserError` if a property that is made now may depend on what is set later."""
        for node in self.program.nodes(ast.Attribute):
            is_set = node.value in self.owners and not isinstance(node.ctx, ast.Load)
            if is_set and self.program.enclosing(node) not in self.visited:
                why = f"its attribute {node.attr} may be set before its property {read.attr} is"
                self._refuse(node, f"{why} first read")

    def _visit(self, method: Any) -> None:
        if method not in self.visited:
            self.visited.add(method)
            self._walk(method, method.body)

    def _walk(self, method: Any, body: Any) -> None:
        """Follows statements to what they first read."""
        for statement in body:
            is_with = isinstance(statement, ast.With)
            inside = {n for p in (statement.items if is_with else [statement]) for n in ast.walk(p)}
            for node in self.attributes({*self.methods}):
                if node in inside:
                    self._read(node, method, statement)
            if is_with:
                self._walk(method, statement.body)

    def _read(self, node: Any, method: Any, statement: Any) -> None:
        count = len(self.made)
        if node.attr not in self.kinds:
            self._visit(self.methods[node.attr])
        elif node.attr not in self.made:
            made = self._make(node.attr, method, statement)
            self.front[statement] = self.front.get(statement, "") + made
        is_called = node.attr not in self.kinds and len(self.attributes({node.attr})) > 1
        outer: Any = self.parents[node]
        while outer not in self.methods.values():
            is_called, outer = is_called or isinstance(outer, _SOMETIMES), self.parents[outer]
        if len(self.made) > count and is_called:
            why = "is first read in a condition, a loop or a method that is called several times"
            self._refuse(node, f"its property {self.made[count]} {why}")

    def _make(self, name: str, method: Any, statement: Any) -> str:
        """Returns the lines in front of a statement that make a property."""
        self.made.append(name)
        self._visit(self.methods[name])
        text, start = self.program.text, self.program.span(statement)[0]
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        word = method.args.args[0].arg
        line = f"{word}.{name} = {word}.{self.new[name]}()\n"
        scope = self._scope(name)
        unit = "\t" if indent.startswith("\t") else "    "
        return f"{indent}with {scope}:\n{indent}{unit}{line}" if scope else f"{indent}{line}"

    def _scope(self, name: str) -> str:
        """Returns the text of the scope in which a property is made, or ""."""
        node, kind = self.kinds[name]
        if kind.scope is None:
            return ""
        given = {k.arg: k.value for k in getattr(node, "keywords", [])}
        values, arguments = getattr(node, "args", []), kind.node.args.args[1:]
        given.update((a.arg, v) for a, v in zip(arguments, values))
        value = given.pop(kind.parameter, None)
        is_own = value is None or literals.is_none(value)
        words = [f'"{name}"' if is_own else self.pieces.text(value)]
        words += map(self.pieces.text, values[len(arguments) :])
        words += [f"{word}={self.pieces.text(v)}" for word, v in given.items()]
        return f"{self.pieces.text(kind.scope)}({', '.join(words)})"
