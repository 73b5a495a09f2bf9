"""The attributes of an object, written as variables."""

from __future__ import annotations

import ast
import builtins
import keyword
from typing import Any, Callable, Iterator

from compat.scripts.migrating.program import Edit, Program
from compat.scripts.migrating.steps import order
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.source import scopes

# As attributes of the object: the place in front of the block that makes it, and behind its call.
BEGIN, END = "__begin__", "__end__"
# What new programs import, and the parameters of an experiment's methods.
_TAKEN = {"compat", "sys", "self", "batch", "training", "step", *dir(builtins)}
_LOOPS = (ast.For, ast.While)
_COMPUTED = (
    *(ast.Call, ast.Lambda, ast.IfExp, ast.BoolOp, ast.Compare, ast.JoinedStr),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


class Attributes:
    """The attributes of the one object of a class, whose methods have been written out.

    Attributes:
      names: the variables that they become.
      edits: those that write them so, and remove the class.
    """

    def __init__(
        self, program: Program, node: Any, owner: str, home: str, refuse: Callable[..., Any]
    ) -> None:
        """Finds them, or raises `UserError`.

        Args:
          program: the program.
          node: the class.
          owner: the name of the object, which nothing else has.
          home: the name of the function in which it is made, or "" of the module.
          refuse: raises an error for a node.
        """
        self.program, self.owner, self._refuse = program, owner, refuse
        self._methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        inside = {*ast.walk(node)}
        self.parents = scopes.parents(program.tree)
        self._outside: list[Any] = [n for n in ast.walk(program.tree) if n not in inside]
        own = sorted(filter(self._is_own, self._outside), key=order.place)
        self._found = [n for n in own if n.attr not in (BEGIN, END)]
        marks: Any = [self.parents[n] for n in own if n.attr in (BEGIN, END)]
        self._begin, self._end = marks
        self._set: dict[str, list[Any]] = {}
        for found in self._found:
            if found.attr in self._methods:
                self._left(found)
            if not isinstance(found.ctx, ast.Load):
                self._set.setdefault(found.attr, []).append(found)
                if getattr(scopes.enclosing(program.tree, found), "name", "") != home:
                    refuse(found, f"its attribute {found.attr} is set in another function")
        aliases = self._aliases()
        self.names = {name: other for name, (other, _) in aliases.items()}
        self._name()
        dropped = [statement for _, statement in aliases.values()]
        first = [s for s in self._first() if s not in dropped]
        moved = {n for statement in [*dropped, *first] for n in ast.walk(statement)}
        names = [Edit(*program.span(n), self.names[n.attr]) for n in self._found]
        start, end = self._line(self._begin)
        indent = program.text[start : program.span(self._begin)[0]]
        lines = Pieces(program).take(first, names, indent)
        self.edits = [Edit(*self._line(statement), "") for statement in [*dropped, self._end]]
        self.edits += [Edit(*Pieces(program).lines(statement), "") for statement in first]
        self.edits += [edit for edit, n in zip(names, self._found) if n not in moved]
        self.edits += [Edit(start, end, lines), Pieces(program).removed(node)]

    def _is_own(self, node: Any) -> bool:
        return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == self.owner

    def _line(self, statement: ast.stmt) -> tuple[int, int]:
        alone = Pieces(self.program).alone(statement)
        return alone or self._refuse(statement, "a line has several statements")

    def _left(self, node: Any) -> None:
        """Refuses a method that could not be written out, or the one for which it could not."""
        seen: set[str] = set()
        while node.attr not in seen:
            seen.add(node.attr)
            inner: list[Any] = [*filter(self._is_own, ast.walk(self._methods[node.attr]))]
            node = next((n for n in inner if n.attr in self._methods), node)
        self._refuse(node, f"its method {node.attr} {_why(self._methods[node.attr])}")

    def _name(self) -> None:
        """Names the variables: as the attributes, if nothing else has these names."""
        taken = {*_TAKEN, *self._words()}
        for found in self._found:
            name = found.attr
            if name not in self._set:
                self._refuse(found, f"its attribute {name} is set nowhere")
            word = name.lstrip("_")
            if not word.isidentifier() or keyword.iskeyword(word) or word in taken:
                word = scopes.free(f"{self.owner}_{word}", taken)
            self.names.setdefault(name, word)
            taken.add(self.names[name])

    def _words(self) -> set[str]:
        """Returns all names of the rest of the program."""
        nodes = self._outside
        found = {n.id for n in nodes if isinstance(n, ast.Name)}
        found |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        found |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        return found | scopes.bound(n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)))

    def _made(self, name: str) -> Any:
        """Returns the only statement that assigns a variable of one function, or None."""
        same = [n for n in self._outside if isinstance(n, ast.Name) and n.id == name]
        made = [self.parents[n] for n in same if not isinstance(n.ctx, ast.Load)]
        words = {getattr(n, "arg", getattr(n, "name", "")) for n in self._outside}
        homes = {scopes.enclosing(self.program.tree, n) for n in same}
        is_one = len(made) == len(homes) == 1 and name not in words
        return made[0] if is_one and self._is_plain(made[0]) else None

    def _is_plain(self, statement: Any) -> bool:
        """Whether a statement assigns one name, on lines of its own."""
        is_one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        is_name = is_one and isinstance(statement.targets[0], (ast.Name, ast.Attribute))
        return is_name and Pieces(self.program).alone(statement) is not None

    def _aliases(self) -> dict[str, tuple[str, Any]]:
        """Returns variables that attributes are set to, once, with the statements that do it."""
        found: dict[str, tuple[str, Any]] = {}
        for name, targets in self._set.items():
            statement = self.parents[targets[0]]
            variable = getattr(getattr(statement, "value", None), "id", "")
            made = self._made(variable) if len(targets) == 1 and self._is_plain(statement) else None
            if made is not None and self._follows(statement, made):
                found[name] = variable, statement
        return found

    def _follows(self, statement: Any, made: Any) -> bool:
        """Whether a statement is behind another, and both run once."""
        outer = {*self._around(statement), *self._around(made)}
        is_after = order.place(made) < order.place(statement)
        return is_after and not any(isinstance(node, _LOOPS) for node in outer)

    def _around(self, node: Any) -> Iterator[ast.AST]:
        while node in self.parents and not isinstance(node, ast.FunctionDef):
            yield node
            node = self.parents[node]

    def _first(self) -> list[Any]:
        """Returns statements that may stand in front of the block, as the sizes of placeholders.

        They assign what depends on nothing that the block makes.
        """
        outer: Any = self.parents[self._begin]
        bodies = [getattr(outer, name, []) for name in ("body", "orelse", "finalbody")]
        body = next(b for b in bodies if isinstance(b, list) and self._begin in b)
        region = body[body.index(self._begin) + 1 :]
        ends = [i for i, s in enumerate(region) if self._end in ast.walk(s)]
        region = region[: ends[0] + 1]
        nodes = [n for s in region for n in ast.walk(s) if isinstance(n, ast.Attribute)]
        changed = {n.attr for n in nodes if not (self._is_own(n) or isinstance(n.ctx, ast.Load))}
        names = scopes.bound(region)
        found: list[Any] = []
        moved: set[str] = set()
        waiting = [*region]
        while waiting:
            statement = waiting.pop(0)
            if statement is self._end:
                break
            if isinstance(statement, ast.With):
                waiting = [*statement.body, *waiting]
            target: Any = statement.targets[0] if self._is_plain(statement) else None
            is_own = self._is_own(target) and len(self._set[target.attr]) == 1
            if not is_own and (not isinstance(target, ast.Name) or not self._made(target.id)):
                continue
            parts: list[Any] = [*ast.walk(statement.value)]
            own = {f".{n.attr}" for n in parts if self._is_own(n)}
            others = {n.attr for n in parts if isinstance(n, ast.Attribute) and not self._is_own(n)}
            read = used(statement.value) - {self.owner} - moved
            is_fixed = own <= moved and not (others & changed or read & names)
            if is_fixed and not any(isinstance(n, _COMPUTED) for n in parts):
                found.append(statement)
                moved.add(f".{target.attr}" if is_own else target.id)
        return found


def _why(method: ast.FunctionDef) -> str:
    """Returns why a method could not be written where it is called."""
    nodes = [*scopes.own_nodes(method.body)]
    returns = [n for n in nodes if isinstance(n, ast.Return)]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes):
        return "yields"
    if len(returns) > 1 or (returns and method.body[-1] is not returns[0]):
        return "returns in other places than its end"
    if method.args.vararg or method.args.kwarg:
        return "takes any arguments"
    return "cannot be written where it is called, as in a condition or behind another call"
