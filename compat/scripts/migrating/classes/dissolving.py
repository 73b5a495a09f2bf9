"""Classes whose objects a program makes one by one, written as plain statements.

What the object has becomes variables, and what its methods do is written where they are called.
"""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from compat.scripts.migrating.classes import bases, members, objects
from compat.scripts.migrating.classes.attributes import BEGIN, END, Attributes
from compat.scripts.migrating.steps import conditions, inlining, order
from compat.scripts.migrating.steps.inlining import Function
from compat.scripts.migrating.steps.kinds import TRAINS, Kinds, last
from compat.scripts.migrating.steps.pieces import Pieces, separated, used
from compat.scripts.rules.program import Edit, Program, RefusedError, UnmarkedError
from compat.scripts.source import literals, scopes

_USED = "is used for more than its attributes"
_UNNAMED = "its object is not assigned to a name; do so where it is used"


def dissolved(program: Program, tf: str) -> Program:
    """Returns a program without classes that make placeholders or train, or raises `UserError`.

    One that trains on what others make, and cannot be written so, stays.
    """
    program = separated(program)
    kinds = Kinds(program, tf)

    def makes(node: ast.AST) -> bool:
        return any(map(kinds.is_input, ast.walk(node)))

    program = bases.flattened(program, makes)
    trains = {call for call in program.nodes(ast.Call) if last(call) in TRAINS}
    found = [n for n in program.nodes(ast.ClassDef) if makes(n) or trains & {*ast.walk(n)}]
    found.sort(key=lambda node: {*map(_text, node.bases)} <= {"object"})
    outer = objects.holders(program, {n.name for n in found if makes(n)})
    for node in [*outer, *(n for n in found if n not in outer)]:
        try:
            program = _without(program, tf, node.name)
        except RefusedError:
            if makes(node):
                raise
            program = objects.with_runners(program, tf, node.name)
    return program


def _without(program: Program, tf: str, name: str) -> Program:
    program, names = objects.apart(program, name)  # A later one may be given an earlier one.
    for word in names[::-1]:
        try:
            program = _Class(program, tf, word).dissolved(len(names) > 1)
        except RefusedError as error:
            if objects.assigned(program, word) is not program and _USED in error.why:
                call = next(c for c in program.nodes(ast.Call) if _text(c.func) == word)
                members.refused(program, name, call, _UNNAMED)
            error.why = error.why.replace(f"the class {word} ", f"the class {name} ")
            error.args = (f"{program.source.filename}:{error.line}: {error.why}",)
            raise
    return program


class _Class:
    """A class of a program, with the one object of it.

    Attributes:
      methods: by their names.
      kinds: the decorators of these, as "property", or "".
      made: the statement that makes the object.
      word: the name of the object.
      owner: the same, or a name that nothing else has.
      stay: the names of methods that cannot be written where they are called.
      home: the function in which it is made, or "".
    """

    def __init__(self, program: Program, tf: str, name: str) -> None:
        self.program, self.tf, self.name = program, tf, name
        self._read(objects.assigned(members.straight(program, name), name))
        self._check()
        self.made = self._object()
        self.word: str = self.made.targets[0].id
        self.owner = self.word
        self.stay: set[str] = set()
        self.home: str = getattr(self.program.enclosing(self.made), "name", "")

    def _read(self, program: Program) -> None:
        self.program = program
        found = [n for n in program.nodes(ast.ClassDef) if n.name == self.name]
        if len(found) != 1:
            self._refuse(found[-1], "another class has its name")
        self.node, self.inside = found[0], {*ast.walk(found[0])}
        self.methods = {n.name: n for n in self.node.body if isinstance(n, ast.FunctionDef)}
        self.parents = program.parents

    def dissolved(self, is_named: bool = False) -> Program:
        """Returns the program without the class, or raises `UserError`.

        The names of its variables begin with that of the object if it `is_named`.
        """
        try:
            self._read(inlining.inlined(self.program, self.tf, _is_own, self._takers))
            self.made = self._object()
            self._read(self.program.after(self._called()))
            while True:
                before = self.stay
                self._read(inlining.inlined(self.program, self.tf, _is_own, self._functions))
                used_ones = {n.attr for n in self.program.nodes(ast.Attribute) if self._is_of(n)}
                self.stay = before | {n for n in used_ones & {*self.methods} if self._is_last(n)}
                if self.stay == before:
                    break
            words = self.owner, self.home, self._refuse, self.tf, is_named
            found = Attributes(self.program, self.node, *words)
            return conditions.settled(self.program.after(found.edits), found.constants)
        except UnmarkedError as error:
            self._refuse(error.node, f"the place of {self.word} is not known, as in an f-string")

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        members.refused(self.program, self.name, node, why)

    def _check(self) -> None:
        """Raises a `UserError` if the class does more than have methods and constants."""
        node = self.node
        if node not in self.program.tree.body:
            self._refuse(node, "it is not at the top level")
        if node.decorator_list or node.keywords or {_text(b) for b in node.bases} - {"object"}:
            self._refuse(node, "it has a base class or a decorator; write in it what that adds")
        for part in node.body:
            is_constant = isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
            is_text = isinstance(part, ast.Expr) and bool(literals.text(part.value))
            is_known = is_constant and len(part.targets) == 1
            if not (is_known or is_text or isinstance(part, (ast.FunctionDef, ast.Pass))):
                self._refuse(part, "its body has more than methods and constants")
        constants = scopes.bound(self._constants())
        self.kinds = {}
        for name, method in self.methods.items():
            decorators = [*map(_text, method.decorator_list), ""]
            self.kinds[name] = decorators[0]
            if len(decorators) > 2 or decorators[0] not in ("property", "staticmethod", ""):
                self._refuse(method.decorator_list[0], f"its method {name} has a decorator")
            defaults = [d for d in [*method.args.defaults, *method.args.kw_defaults] if d]
            if any(used(default) & constants for default in defaults):
                self._refuse(method, f"a default of its method {name} is a constant of it")
        supers = {n for s in self._supers() for n in ast.walk(s)}
        for use in self._selves():
            if use not in supers:
                self._check_use(use, f"{use.id} {_USED}")

    def _check_use(self, use: ast.AST, why: str) -> None:
        """Raises a `UserError` if an object is used for more than attributes and methods."""
        node: Any = self.parents[use]
        if not isinstance(node, ast.Attribute):
            self._refuse(use, why)
        if node.attr.endswith("__"):
            self._refuse(use, f"{node.attr} of its object is used")
        if node.attr in self.methods and not isinstance(node.ctx, ast.Load):
            self._refuse(use, f"its method {node.attr} is replaced")

    def _constants(self) -> list[Any]:
        return [part for part in self.node.body if isinstance(part, ast.Assign)]

    def _supers(self) -> list[ast.stmt]:
        """Returns the calls of the constructor of `object`, which does nothing."""
        found: list[ast.stmt] = []
        for node in self.inside:
            call: Any = node.value if isinstance(node, ast.Expr) else None
            owner = getattr(getattr(call, "func", None), "value", None)
            is_super = isinstance(owner, ast.Call) and _text(owner.func) == "super"
            if is_super and last(call) == "__init__" and not call.args:
                found.append(node)  # type: ignore[arg-type]
        return found

    def _dropped(self, statement: Any) -> Edit:
        """Returns the edit that removes a statement, or the only one of a block by `pass`."""
        alone = Pieces(self.program).alone(statement)
        if alone is None or len(getattr(self.parents[statement], "body", [])) == 1:
            return Edit(*self.program.span(statement), "pass")
        return Edit(*alone, "")

    def _selves(self) -> list[ast.Name]:
        """Returns the uses of the object in its methods."""
        found: list[ast.Name] = []
        for name, method in self.methods.items():
            if self.kinds[name] != "staticmethod":
                if not method.args.args:
                    self._refuse(method, f"its method {name} does not take the object")
                found += scopes.uses(method, {method.args.args[0].arg})
        return found

    def _object(self) -> Any:
        """Returns the statement that makes the one object, or raises `UserError`."""
        supers = {n for s in self._supers() for n in ast.walk(s)}
        uses = [n for n in self.program.nodes(ast.Name) if n.id == self.name and n not in supers]
        uses = sorted(uses, key=order.place)
        calls: list[Any] = [n for n in uses if getattr(self.parents[n], "func", None) is n]
        for use in uses:
            if use not in calls:
                self._refuse(use, "it is used for more than to make an object")
        if len(calls) != 1:
            why = "an object of it makes another one" if calls else "no object of it is made here"
            self._refuse(calls[1] if calls else self.node, why)
        call: Any = self.parents[calls[0]]
        made: Any = self.parents[call]
        targets = made.targets if isinstance(made, ast.Assign) else []
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            self._refuse(call, _UNNAMED)
        word: str = targets[0].id
        scope: Any = self.program.enclosing(made)
        bound = scopes.bound(scope.body, without=[made])
        bound |= set() if isinstance(scope, ast.Module) else scopes.parameters(scope)
        if word in bound:
            self._refuse(made, f"{word} is assigned again")
        return made

    def _takers(self, program: Program) -> list[Function]:
        """Returns the functions that are called with the object."""
        paths = {f"{self.word}.{name}" for name in self.methods}
        found = []
        for function in inlining.own(program, self.tf):
            calls = inlining.calls(program, function)
            given = [a for c in calls for a in [*c.args, *(k.value for k in c.keywords)]]
            if self.word in {getattr(a, "id", "") for a in given}:
                found.append(function._replace(owner=self.word, methods=paths))
        return found

    def _called(self) -> list[Edit]:
        """Returns edits that call properties, and the constructor as a method of the object."""
        scope, span = self.program.enclosing(self.made), self.program.span
        target = self.made.targets[0]
        uses = [n for n in scopes.uses(scope, {self.word}) if n is not target]
        for use in uses:
            self._check_use(use, f"{self.word} {_USED}")
        self.owner = scopes.free(self.word, members.taken(self.program, {*uses, target}))
        edits = [*map(self._dropped, self._supers())]
        gone = {n for s in self._supers() for n in ast.walk(s)}
        for use in [*uses, *(n for n in self._selves() if n not in gone)]:
            edits.append(Edit(*span(use), self.owner))
            node: Any = self.parents[use]
            if self.kinds.get(node.attr) == "property":
                edits.append(Edit(span(node)[1], span(node)[1], "()"))
        for name, method in self.methods.items():
            if self.kinds[name]:
                start = self.program.text.rfind("\n", 0, span(method.decorator_list[0])[0]) + 1
                edits.append(Edit(start, self.program.text.index("\n", start) + 1, ""))
            if self.kinds[name] != "staticmethod":
                edits.append(Edit(*span(method.args.args[0]), self.owner))
        return [*edits, *self._begun()]

    def _begun(self) -> list[Edit]:
        """Returns edits that call the constructor, and mark its end and the start of its block."""
        text, outer = self.program.text, self.made
        while isinstance(self.parents[outer], ast.With):
            outer = self.parents[outer]
        if not all(map(Pieces(self.program).alone, (self.made, outer))):
            self._refuse(self.made, "its object is made beside another statement of the line")
        place = self.program.span(outer)[0]
        line = text.rfind("\n", 0, place) + 1
        begin = Edit(line, line, f"{text[line:place]}{self.owner}.{BEGIN}\n")
        start, end = self.program.span(self.made)
        after = (text + "\n").index("\n", end) + 1
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        marks = [begin, Edit(after, after, f"{indent}{self.owner}.{END}\n")]
        lines = [f"{self.owner}.{Pieces(self.program).text(s)}" for s in self._constants()]
        first = "".join(f"{line}\n{indent}" for line in lines)
        if "__init__" not in self.methods:
            return [*marks, Edit(start, end, f"{first}pass")]
        called = self.program.span(self.made.value.func)[1]
        return [*marks, Edit(start, called, f"{first}{self.owner}.__init__")]

    def _functions(self, program: Program) -> list[Function]:
        """Returns the methods that call no other but those that stay."""
        self._read(program)
        paths = {f"{self.owner}.{name}" for name in self.methods}
        found = []
        for name, method in filter(lambda item: self._is_last(item[0]), self.methods.items()):
            function = Function(f"{self.owner}.{name}", method, self.tf, self.owner)
            is_method = self.kinds[name] != "staticmethod"
            found.append(function._replace(methods=paths, is_method=is_method))
        return found

    def _is_of(self, node: Any) -> bool:
        return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == self.owner

    def _is_last(self, name: str) -> bool:
        paths = {f"{self.owner}.{other}" for other in {*self.methods} - self.stay}
        return not order.calls([self.methods[name]], paths)


def _is_own(program: Program, function: Function) -> bool:
    return bool(function.owner)


def _text(node: ast.AST) -> str:
    """Returns the dotted name that an expression is, or "?" of another."""
    return literals.dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else "?"
