"""The statements that build the graph of a program, which become the function of a step."""

from __future__ import annotations

import ast
from typing import Any, Iterator, NamedTuple

from compat.scripts.migrating.steps import conditions
from compat.scripts.migrating.steps.estimators import TRAINED
from compat.scripts.migrating.steps.kinds import MAKES_VARIABLE, PLAIN, TRAINS, Kinds, last, words
from compat.scripts.migrating.steps.pieces import independent, used
from compat.scripts.rules.program import Program, RefusedError
from compat.scripts.source import literals, scopes

_SOMETIMES = (ast.If, ast.For, ast.While, ast.Try, ast.With)  # Or part by part.
_OPERATIONS = (*TRAINS, "group", "no_op", "get_init_tokens_op")
_GLOBAL_STEPS = ("get_or_create_global_step", "create_global_step")
# Parts of TensorFlow that read files, and have none in a graph.
_DATA = ("input_data", "read_data_sets")
_WRITE = "write `x = tf.placeholder(...)` there, in no branch, loop, function or other expression"


class Placeholder(NamedTuple):
    """An input of the graph: the parameter of the function, and its `tf.TensorSpec`."""

    name: str
    spec: str
    named: str  # The same with a name, by which it is fed.
    statement: ast.Assign


class Graph:
    """What is known of the statements that build a graph.

    Attributes:
      is_monitored: whether a monitored session runs it.
      block: the `with` statement that they are in.
      scope: the function, or the module, that it is in.
      statements: those that build.
      rest: those after them in the block.
      placeholders: by name.
      assigned: the names that they bind.
      tensors: those of them that depend on TensorFlow.
      operations: those that are operations, of which a session returns None.
      step: the statement that makes the global step anew, or None.
      names_step: whether the program calls its global step so, by which `compat` finds it.
    """

    def __init__(
        self,
        program: Program,
        tf: str,
        what: str = "a program on compat.step",
        remedy: str = "use --to=v1",
    ) -> None:
        self.program, self.tf = program, tf
        self._what, self.remedy = what, remedy
        self.kinds = Kinds(program, tf)
        self.called = self.kinds.called
        self.is_monitored = any(map(self.kinds.is_monitored, program.nodes(ast.Call)))
        self.block = self._find_block()
        self.scope: Any = program.enclosing(self.block)
        body = self.block.body
        ends = [i for i, node in enumerate(body) if self.kinds.uses_session(node)]
        end = ends[0] if ends else len(body)
        passed = {getattr(word.value, "id", "") for word in program.nodes(ast.keyword)}
        while self.kinds.is_tool(body[end - 1]) and not scopes.bound([body[end - 1]]) & passed:
            end -= 1  # To no supervisor, which would know it by itself.
        self.statements, self.rest = body[:end], body[end:]
        if not any(self.kinds.trains(node) for node in self.statements):
            self.refuse(self.block, "its block makes a session before it has built what is trained")
        for node in scopes.own_nodes(self.statements):
            if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)):
                self.refuse(node, "it leaves its function while it builds the graph")
        self.assigned = scopes.bound(self.statements) - {"_"}
        self.always = self._always(self.statements)
        self._names: dict[str, int] = {}
        self.placeholders = {found.name: found for found in self._placeholders()}
        self.tensors, self.operations = self._of_tensorflow()
        self.step_name = self._step_name()
        self.names_step = any(
            last(call) in _GLOBAL_STEPS or "global_step" in map(literals.text, words(call))
            for call in program.nodes(ast.Call)
        )
        self.step = self._step_statement()

    def runs(self, statement: ast.AST) -> bool:
        """Whether a statement runs a session."""
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        methods = {last(call) for call in calls if isinstance(call.func, ast.Attribute)}
        return bool(methods & {"run", "eval"})

    def refuse(self, node: ast.AST, why: str) -> None:
        """Raises a `UserError` with the place of a node."""
        why = f"this cannot become {self._what}, since {why}; {self.remedy}, or write it plainly"
        raise RefusedError(self.program, node, why)

    def apart(self) -> list[ast.stmt]:
        """Returns the statements that build nothing, of nothing that the others build."""
        kinds = (ast.Assign, ast.AugAssign, ast.If, ast.Try)
        plain = [s for s in self.statements if isinstance(s, kinds)]
        found: list[ast.stmt] = [s for s in plain if not (self.kinds.builds(s) or self.runs(s))]
        return independent(found, self.statements, self.placeholders)

    def assignment(self, name: str) -> Any:
        """Returns the only statement of the scope that assigns a name, or None."""
        found = [
            node
            for node in ast.walk(self.scope)
            if isinstance(node, ast.Assign) and name in scopes.bound([node])
        ]
        is_plain = len(found) == 1 and isinstance(found[0].targets[0], ast.Name)
        return found[0] if is_plain and len(found[0].targets) == 1 else None

    def _nodes(self) -> Iterator[ast.AST]:
        for statement in self.statements:
            yield from ast.walk(statement)

    def _find_block(self) -> ast.With:
        found: list[ast.With] = []
        for node in self.program.nodes(ast.With):
            kinds = [self.kinds.is_block(item.context_expr) for item in node.items]
            within = any(node in ast.walk(outer) for outer in found)
            if any(kinds) and not within and self.kinds.trains(node):
                found.append(node)
        if not found:
            self._refuse_without_block()
        homes = {n: getattr(self.program.enclosing(n), "name", "") for n in found}
        around = [n for n in found if self.kinds.is_around(n, {*homes.values()} - {homes[n]})]
        found = [node for node in found if node not in around]
        if len(found) != 1:
            node = found[1]
            for call in (n for block in found for n in ast.walk(block)):
                if isinstance(call, ast.Call) and last(call) in {*homes.values()} - {""}:
                    why = f"its block calls {last(call)}, which builds what is trained and runs it"
                    self.refuse(call, f"{why}; build there what it builds beside")
            what = f"`with {self.tf}.device(...):` that build what is trained"
            self.refuse(node, f"it has {len(found)} blocks {what}, expected one")
        if not any(map(self.kinds.makes_session, self.program.nodes(ast.Call))):
            self.refuse(found[0], "it has no session")
        for call in self.program.nodes(ast.Call):
            if self.called(call) in PLAIN:
                self.refuse(call, f"{self.tf}.{self.called(call)} is not assigned to a name")
        return found[0]

    def _refuse_without_block(self) -> None:
        """Refuses a program in which nothing that a session runs is trained in one place."""
        calls = self.program.nodes(ast.Call)
        for call in (c for c in calls if last(c).endswith(TRAINED)):
            self.refuse(call, f"{last(call)} trains by itself, which compat.estimator serves")
        for kind in self.program.nodes(ast.ClassDef, ast.FunctionDef):
            for call in ast.walk(kind):
                if isinstance(call, ast.Call) and last(call) in TRAINS:
                    self.refuse(call, self._apart(kind.name))
        node = next((call for call in calls if last(call) in TRAINS), self.program.tree.body[0])
        why = "no session runs it" if node in calls else "nothing in it is trained by an optimizer"
        self.refuse(node, why)

    def _apart(self, builder: str) -> str:
        """Returns why a program is refused that makes its session elsewhere, and a remedy."""
        found = "no session is made here; migrate the script that makes it"
        for function in self.program.nodes(ast.FunctionDef)[::-1]:
            nodes: Any = ast.walk(function)
            if any(self.called(n) in PLAIN or self.kinds.makes_session(n) for n in nodes):
                found = f"{function.name} makes the session; make it where that is called"
        return f"{builder} builds what is trained, and {found}"

    def _placeholders(self) -> Iterator[Placeholder]:
        all_calls = [call for call in self.program.nodes(ast.Call) if self.kinds.is_input(call)]
        found: set[ast.AST] = set()
        for statement, scope in [*self.before(), *self.in_scopes(self.statements, "")]:
            value: Any = getattr(statement, "value", None)
            if isinstance(statement, ast.Assign) and value in all_calls:
                target = statement.targets[0]
                if len(statement.targets) == 1 and isinstance(target, ast.Name):
                    again = scopes.bound(self.scope.body, without=[statement])
                    if target.id in again:
                        self.refuse(statement, f"the placeholder {target.id} is assigned again")
                    found.add(value)
                    yield Placeholder(target.id, *self._specs(value, scope), statement)
        for call in all_calls:
            if call not in found:
                self.refuse(call, f"a placeholder is not assigned to a name in its block; {_WRITE}")

    def before(self) -> list[tuple[ast.stmt, str]]:
        """Returns the statements that always run before the block, in the same scope."""
        found: list[tuple[ast.stmt, str]] = []
        for node in ast.walk(self.scope):
            for name in ("body", "orelse"):
                body = getattr(node, name, [])
                is_block = isinstance(body, list)  # Of a lambda it is an expression.
                inside = [s for s in body if self.block in ast.walk(s)] if is_block else []
                if inside and node is not self.block:
                    found += [(s, "") for s in body[: body.index(inside[0])]]
        return found

    def in_scopes(self, statements: Any, scope: str) -> Iterator[tuple[ast.stmt, str]]:
        """Yields statements that always run, and the name scope that each is in."""
        for statement in statements:
            yield statement, scope
            if isinstance(statement, ast.With):
                inner = scope
                for item in filter(self.kinds.is_scope, statement.items):
                    inner += self._scope(item.context_expr.args[0])  # type: ignore[attr-defined]
                yield from self.in_scopes(statement.body, inner)

    def _scope(self, node: Any) -> str:
        """Returns what a scope puts in front of names; what it computes is between null bytes."""
        made = getattr(self.assignment(getattr(node, "id", "")), "value", node)
        if literals.text(node):
            return literals.text(node) + "/"
        is_text = isinstance(conditions.value_of(made, {}), (str, conditions.Beginning))
        is_known = is_text and not used(node) & self.assigned
        return f"\0{self.program.expression(node)}\0/" if is_known else ""

    def _always(self, statements: Any) -> set[str]:
        """Returns the names that statements bind in each case, also in both branches of an `if`."""
        found: set[str] = set()
        for statement, _ in self.in_scopes(statements, ""):
            if isinstance(statement, ast.If):
                found |= self._always(statement.body) & self._always(statement.orelse)
            elif not isinstance(statement, _SOMETIMES):
                found |= scopes.bound([statement])
        return found

    def _specs(self, call: ast.Call, scope: str) -> tuple[str, str]:
        """Returns the `tf.TensorSpec` of a placeholder, and the one with a name in any case."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        given.update(zip(("dtype", "shape", "name"), call.args))
        if self.called(call) != "placeholder" or set(given) - {"dtype", "shape", "name"}:
            self.refuse(call, "only tf.placeholder(dtype, shape, name) can be a parameter")
        used = {name.id for node in given.values() for name in scopes.uses(node, self.assigned)}
        if used:
            why = f"the placeholder needs {sorted(used)[0]}, which the block makes"
            self.refuse(call, f"{why}; make it in front of the block, or write its value there")
        text = {key: self.program.text[slice(*self.program.span(v))] for key, v in given.items()}
        types = [text.get("shape", "None"), text["dtype"]]
        name = full = scope + (literals.text(given.get("name")) or "Placeholder")
        number = self._names.get(full, 0)  # As a graph names them.
        self._names[full] = number + 1
        full += f"_{number}" if number else ""
        parts = enumerate(full.split("\0"))
        full = " + ".join(part if i % 2 else f'"{part}"' for i, part in parts if part)
        specs = [f"{self.tf}.TensorSpec({', '.join(w)})" for w in (types, [*types, full])]
        return specs[name != "Placeholder"], specs[1]

    def _of_tensorflow(self) -> tuple[set[str], set[str]]:
        """Returns the names of tensors and the like, and those of operations."""
        imports = [*self.program.nodes(ast.Import), *self.program.nodes(ast.ImportFrom)]
        modules = scopes.bound([node for node in imports if _is_tensorflow(node)])
        modules -= {*_DATA, self.tf}
        fetches = [c.args[0] for c in self.program.nodes(ast.Call) if last(c) == "run" and c.args]
        fetched = {name.id for node in fetches for name in scopes.uses(node, self.assigned)}
        tensors, operations = set(self.placeholders) | fetched, set()
        for node in self._nodes():
            if not isinstance(node, (ast.Assign, ast.AugAssign, ast.For)):
                continue
            value = node.iter if isinstance(node, ast.For) else node.value
            names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            own = set() if self.kinds.is_apart(value) else {self.tf}
            if names & {*own, *modules, *self.kinds.own, *tensors}:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                tensors |= scopes.bound(targets)
                if isinstance(value, ast.Call) and last(value) in _OPERATIONS:
                    operations |= scopes.bound(targets)
        return tensors, operations | (self.kinds.run_alone & tensors)

    def _step_name(self) -> str:
        """Returns the name that the global step has in the graph, or ""."""
        found: list[str] = []
        for node in self._nodes():
            if isinstance(node, ast.Call) and last(node) in TRAINS:
                named = [k.value for k in node.keywords if k.arg == "global_step"]
                values = [*named, *node.args[1:2]]
                found += [value.id for value in values if isinstance(value, ast.Name)]
        # Another one may count the updates of a worker's own variables.
        return next((name for name in found if name == "global_step"), [*found, ""][0])

    def _step_statement(self) -> Any:
        statement = self.assignment(self.step_name) if self.step_name else None
        if statement is None or statement not in self._nodes():
            return None
        call, name = statement.value, self.called(statement.value).rpartition(".")[2]
        if name in _GLOBAL_STEPS:
            return statement
        if name not in MAKES_VARIABLE:
            return None
        words = {keyword.arg: keyword.value for keyword in call.keywords}
        first = call.args[0] if name == "Variable" and call.args else words.get("initializer")
        zero = literals.value(first) == 0 or (
            isinstance(first, ast.Call)
            and (not first.args or literals.value(first.args[0]) == 0)
            and self.called(first).endswith(("constant_initializer", "zeros_initializer"))
        )
        return statement if zero else None  # Nothing trains it, with or without trainable=False.


def _is_tensorflow(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether a statement imports parts of TensorFlow, such as `slim`."""
    return str(getattr(node, "module", None) or node.names[0].name).startswith("compat.v1")
