"""The attributes of an object, written as variables."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from typing import Any, Callable, Iterator

from compat.scripts.migrating.steps import conditions, order
from compat.scripts.migrating.steps.kinds import TRAINS, Kinds, last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import scopes

# As attributes of the object: the place in front of the block that makes it, and behind its call.
BEGIN, END = "__begin__", "__end__"
# What new programs import, and the parameters of an experiment's methods.
_TAKEN = {"compat", "sys", "self", "batch", "training", "step", *dir(builtins)}
_LOOPS = (ast.For, ast.While)
_COMPUTED = (
    *(ast.Call, ast.Lambda, ast.IfExp, ast.BoolOp, ast.Compare, ast.JoinedStr),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Dict, ast.Set),
)


class Attributes:
    """The attributes of the one object of a class, whose methods have been written out.

    Attributes:
      names: the variables that they become.
      edits: those that write them so, and remove the class.
      constants: the values of those variables that are set once, to a constant.
    """

    def __init__(
        self,
        program: Program,
        node: Any,
        owner: str,
        home: str,
        refuse: Callable[..., Any],
        tf: str,
        is_named: bool,
    ) -> None:
        """Finds them, or raises `UserError`.

        Args:
          program: the program.
          node: the class.
          owner: the name of the object, which nothing else has.
          home: the name of the function in which it is made, or "" of the module.
          refuse: raises an error for a node.
          tf: the name of TensorFlow.
          is_named: whether the names of the variables begin with that of the object.
        """
        self._is_named = is_named
        self.program, self.owner, self._refuse, self._tf = program, owner, refuse, tf
        self._methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        inside = {*ast.walk(node)}
        self.parents = program.parents
        self._outside: list[Any] = [n for n in ast.walk(program.tree) if n not in inside]
        self.names: dict[str, str] = {}
        kept = self._kept(Kinds(program, tf))
        for name in kept:
            self.names[name] = scopes.free(name, {*_TAKEN, *self._words()})
        self._outside += [n for method in kept.values() for n in ast.walk(method)]
        own = sorted(filter(self._is_own, self._outside), key=order.place)
        self._found = [n for n in own if n.attr not in (BEGIN, END)]
        marks: Any = [self.parents[n] for n in own if n.attr in (BEGIN, END)]
        self._begin, self._end = marks
        self._set: dict[str, list[Any]] = {}
        for found in self._found:
            if not isinstance(found.ctx, ast.Load):
                self._set.setdefault(found.attr, []).append(found)
                place = program.enclosing(found)
                if place not in kept.values() and getattr(place, "name", "") != home:
                    refuse(found, f"its attribute {found.attr} is set in another function")
        aliases = self._aliases()
        self.names.update((name, other) for name, (other, _) in aliases.items())
        self._name()
        once: dict[str, Any] = {
            n: self.parents[found[0]] for n, found in self._set.items() if len(found) == 1
        }
        made = {self.names[n]: s.value for n, s in once.items() if self._is_plain(s)}
        self.constants = conditions.known(made)
        calls = {self.names[n]: getattr(s, "value", None) for n, s in once.items()}
        updates = [n for n, v in calls.items() if isinstance(v, ast.Call) and last(v) in TRAINS]
        self.constants.update((f"{name} is None", False) for name in updates)
        dropped = [statement for _, statement in aliases.values()]
        first = [s for s in self._first() if s not in dropped]
        moved = {n for s in [*dropped, *first, *kept.values()] for n in ast.walk(s)}
        names = [Edit(*program.span(n), self.names[n.attr]) for n in self._found]
        start, end = self._line(self._begin)
        indent = program.text[start : program.span(self._begin)[0]] if home else ""
        functions = "".join(self._function(m, names, indent, home) for m in kept.values())
        indent = program.text[start : program.span(self._begin)[0]]
        lines = Pieces(program).take(first, names, indent) + (functions if home else "")
        self.edits = [Edit(*self._line(statement), "") for statement in [*dropped, self._end]]
        self.edits += [Edit(*Pieces(program).lines(statement), "") for statement in first]
        self.edits += [edit for edit, n in zip(names, self._found) if n not in moved]
        gone = Pieces(program).removed(node)
        self.edits += [Edit(start, end, lines), gone._replace(text="" if home else functions)]

    def _is_own(self, node: Any) -> bool:
        return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == self.owner

    def _line(self, statement: ast.stmt) -> tuple[int, int]:
        alone = Pieces(self.program).alone(statement)
        return alone or self._refuse(statement, "a line has several statements")

    def _kept(self, kinds: Kinds) -> dict[str, Any]:
        """Returns the methods that become functions: they build nothing, and are called."""

        def builds(name: str) -> bool:
            nodes = [*ast.walk(self._methods[name])]
            trains = any(isinstance(n, ast.Call) and last(n) in TRAINS for n in nodes)
            return trains or kinds.builds(self._methods[name]) or any(map(kinds.is_input, nodes))

        waiting = [n for n in self._outside if self._is_own(n) and n.attr in self._methods]
        found: set[str] = set()
        while waiting:
            node = waiting.pop()
            inner: list[Any] = [*filter(self._is_own, ast.walk(self._methods[node.attr]))]
            inner = [n for n in inner if n.attr in self._methods and n.attr not in found]
            if builds(node.attr) and not any(builds(n.attr) for n in inner if n.attr != node.attr):
                why = _why(self._methods[node.attr])
                self._refuse(node, f"its method {node.attr}, which builds, {why}")
            found.add(node.attr)
            waiting += inner
        return {name: method for name, method in self._methods.items() if name in found}

    def _function(self, method: Any, names: list[Edit], indent: str, home: str) -> str:
        """Returns a method as a function, the attributes of which are variables outside of it."""
        text, span = self.program.text, self.program.span
        start, _ = span(method)
        word = re.compile(r"def\s+(\w+)").search(text, start)
        edits = [*names, Edit(*word.span(1), self.names[method.name])] if word else [*names]
        owners = [a for a in method.args.args[:1] if a.arg == self.owner]
        for owner in owners:  # A static method has none.
            comma = re.compile(r"\s*(,\s*)?").match(text, span(owner)[1])
            edits.append(Edit(span(owner)[0], comma.end() if comma else 0, ""))
        inner: list[Any] = [*filter(self._is_own, ast.walk(method))]
        inner = [n for n in inner if not isinstance(n.ctx, ast.Load)]
        if inner:
            has_text = ast.get_docstring(method) is not None
            place = span(method.body[int(has_text)])[0]
            line = text.rfind("\n", 0, place) + 1
            width = start - text.rfind("\n", 0, start) - 1
            outer = indent + text[line + width : place]
            changed = ", ".join(sorted({self.names[n.attr] for n in inner}))
            kind = "nonlocal" if home else "global"
            edits.append(Edit(line, line, f"{outer}{kind} {changed}\n"))
        return Pieces(self.program).take([method], edits, indent) + ("\n" if home else "\n\n")

    def _name(self) -> None:
        """Names the variables: as the attributes, if nothing else has these names."""
        taken = {*_TAKEN, *self._words()}
        for found in self._found:
            name = found.attr
            if name not in self._set and name not in self._methods:
                self._refuse(found, f"its attribute {name} is set nowhere")
            word = name.lstrip("_")
            is_word = word.isidentifier() and not keyword.iskeyword(word)
            if self._is_named or not is_word or word in taken:
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
        homes = {self.program.enclosing(n) for n in same}
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
            uses = [n for n in self._found if n.attr == name and n not in targets]
            is_object = all(isinstance(self.parents[n], ast.Attribute) for n in uses)
            is_given = len(targets) == 1 and is_object and self._is_given(variable, statement)
            if is_given or (made is not None and self._follows(statement, made)):
                found[name] = variable, statement
        return found

    def _is_given(self, name: str, statement: Any) -> bool:
        """Whether a name is a parameter of the function of a statement, which assigns no other."""
        own: list[Any] = [
            n for n in self._outside if getattr(n, "arg", getattr(n, "id", "")) == name
        ]
        arguments = [n for n in own if isinstance(n, ast.arg)]
        home: Any = self.program.enclosing(statement)
        inside = [n for n in own if isinstance(n, ast.Name) and self.program.enclosing(n) is home]
        stored = [n for n in inside if not isinstance(n.ctx, ast.Load)]
        is_one = len(arguments) == 1 and not stored and self._is_plain(statement)
        return is_one and isinstance(home, ast.FunctionDef) and arguments[0] in home.args.args

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
        seen: list[ast.AST] = []
        moved: set[str] = set()
        waiting = [*region]
        while waiting:
            statement = waiting.pop(0)
            if statement is self._end:
                break
            if isinstance(statement, ast.With):
                waiting = [*statement.body, *waiting]
                seen += [item.context_expr for item in statement.items]
            else:
                seen.append(statement)
            target: Any = statement.targets[0] if self._is_plain(statement) else None
            is_own = self._is_own(target) and len(self._set[target.attr]) == 1
            if not is_own and (not isinstance(target, ast.Name) or not self._made(target.id)):
                continue
            parts: list[Any] = [*ast.walk(statement.value)]
            own = {f".{n.attr}" for n in parts if self._is_own(n)}
            others = {n.attr for n in parts if isinstance(n, ast.Attribute) and not self._is_own(n)}
            read = used(statement.value) - {self.owner} - moved
            is_fixed = own <= moved and not (others & changed or read & names)
            read = order.parts(statement.value) - {self.owner}
            changed_before = set().union(*(order.touched(s, self._tf) for s in seen[:-1]))
            is_fixed = is_fixed and not (read and changed_before & {*read, "*"})
            name = target.attr if is_own else target.id
            is_list = any(isinstance(n, ast.List) for n in parts)
            is_fixed = is_fixed and not (is_list and order.grows(self._outside, name))
            if is_fixed and not any(isinstance(n, _COMPUTED) for n in parts):
                found.append(statement)
                moved.add(f".{name}" if is_own else name)
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
