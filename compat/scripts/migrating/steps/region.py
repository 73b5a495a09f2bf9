"""Where a program builds its graph, also without a block of its own."""

from __future__ import annotations

import ast
from typing import Any

from compat.scripts.migrating.steps.kinds import MAKES_VARIABLE, PLAIN, Kinds, default_name, last
from compat.scripts.migrating.steps.pieces import Pieces, independent, used
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import scopes

INITIALIZERS = (
    *("initializer", "initialize_all_variables", "initialize_local_variables"),
    *("initialize_variables", "initialize_all_tables"),
)


class Region:
    """The statements of a program that build what is trained, wherever they are.

    Attributes:
      creations: the calls that make plain sessions.
      sessions: the names of these.
      body: the list of statements in which the graph is built; empty if it is in no one place.
      first, end: the numbers of the statements in it that build.
      region: these.
      built: the names that they bind.
      indent: what is in front of them.
    """

    def __init__(self, program: Program, tf: str) -> None:
        self.program, self.tf = program, tf
        self.kinds = Kinds(program, tf)
        self.parents = program.parents
        calls = program.nodes(ast.Call)
        self.creations = [call for call in calls if self.kinds.called(call) in PLAIN]
        names = [getattr(self.parents[c], "targets", [None])[0] for c in self.creations]
        names += [getattr(self.parents[c], "optional_vars", None) for c in self.creations]
        self.sessions = {name.id for name in names if isinstance(name, ast.Name)}
        self.body, self.first, self.end = self._find()
        self.region = self.body[self.first : self.end]
        self.built = scopes.bound(self.region)
        self.indent = ""
        if self.region:
            start, _ = self.lines(self.region[0])
            self.indent = program.text[start : program.span(self.region[0])[0]]

    def _find(self) -> tuple[list[ast.stmt], int, int]:
        """Returns the list of statements that builds what is trained, and which of them do."""
        scopes_with = [self.program.tree, *self.program.nodes(ast.FunctionDef)]
        scopes_with = [scope for scope in scopes_with if self._has_session(scope)]
        for scope in [*scopes_with, self.program.tree]:  # Or its session is in a function.
            body: Any = scope.body
            while True:
                found = [s for s in body if not defines(s) and self.kinds.trains(s)]
                # What an object has is run where it is made, and not by the methods of a class.
                if not any(self.kinds.trains(s, by_class=scope in scopes_with) for s in found):
                    break
                statement: Any = found[0]
                is_block = isinstance(statement, ast.With) and _is_block(self.kinds, statement)
                inner = self._inner(statement)
                if not inner:
                    return self._region(body, found)
                if is_block and not any(map(self.runs, inner[:1])):
                    before = body[: body.index(statement)]
                    if len(found) > 1 or any(map(self.takes, before)):
                        return self._region(body, found)
                    return self._region(inner, [s for s in inner if self.kinds.trains(s)])
                body = inner
        return [], 0, 0

    def takes(self, statement: ast.stmt) -> bool:
        """Whether a statement makes variables, or placeholders in a block, for one beside it."""
        items = getattr(statement, "items", [])
        is_block = any(self.kinds.called(i.context_expr) == "device" for i in items)
        made = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        makes = is_block and any(map(self.kinds.is_input, made))
        makes = makes or any(self.kinds.called(n).endswith(MAKES_VARIABLE) for n in made)
        return makes and not (defines(statement) or self.runs(statement))

    def _inner(self, statement: Any) -> Any:
        """Returns the statements of a compound one that makes the session too, or is a block."""
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, [])
            if isinstance(inner, list) and any(map(self.kinds.trains, inner)):
                makes = any(map(self.kinds.uses_session, ast.walk(statement)))
                # Or one within it is, as in `elif FLAGS.job_name == "worker":` before the session.
                items = [i for n in ast.walk(statement) for i in getattr(n, "items", [])]
                is_block = any(self.kinds.is_block(item.context_expr) for item in items)
                return inner if makes or is_block else []
        return []

    def _has_session(self, scope: ast.AST) -> bool:
        inside = [n for n in ast.walk(scope) if self.kinds.called(n) and isinstance(n, ast.Call)]
        return any(
            self.program.enclosing(call) is scope
            and (call in self.creations or self.kinds.makes_session(call))
            for call in inside
        )

    def _region(self, body: list[ast.stmt], training: list[ast.stmt]) -> Any:
        builds: list[bool] = []
        tensors: set[str] = set()
        for statement in body:
            uses = self.kinds.builds(statement) or scopes.uses(statement, tensors)
            is_part = not (defines(statement) or self.runs(statement) or self._feeds(statement))
            builds.append(bool(uses) and is_part)
            tensors |= scopes.bound([statement]) if builds[-1] else set()
        first = builds.index(True) if True in builds else 0
        after = range(first, len(body))
        ends = [i for i in after if self.runs(body[i]) and not self.is_creation(body[i])]
        end = ends[0] if ends else len(body)
        while end > first and not builds[end - 1]:
            end -= 1
        return (body, first, end) if training[0] in body[first:end] else ([], 0, 0)

    def _feeds(self, statement: ast.stmt) -> bool:
        is_tool = self.kinds.is_tool(statement)
        return is_tool and isinstance(getattr(statement, "value", None), ast.Dict)

    def runs(self, node: ast.AST) -> bool:
        """Whether a statement runs, or makes, a session."""
        if defines(node):
            return False
        if scopes.uses(node, self.sessions) and not self.is_creation(node):
            return True
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        methods = {last(call) for call in calls if isinstance(call.func, ast.Attribute)}
        # What `close` returns is an operation, if it is kept.
        running = {"run", "eval"} if isinstance(node, ast.Assign) else {"run", "eval", "close"}
        return self.kinds.uses_session(node) or bool(methods & running)

    def is_creation(self, statement: ast.AST) -> bool:
        return isinstance(statement, ast.Assign) and statement.value in self.creations

    def initializers(self) -> set[str]:
        """Returns the names of operations that initialize."""
        return {
            name
            for node in self.program.nodes(ast.Assign)
            if self.initializes(node.value, set())
            for name in scopes.bound(node.targets)
        }

    def initializes(self, node: Any, known: set[str]) -> bool:
        """Whether a node is an operation that initializes, or some; those by name are `known`."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(self.initializes(n, known) for n in node.elts)
        if isinstance(node, ast.Name):
            return node.id in known
        called = self.kinds.called(node).rpartition(".")[2]
        if called == "group":
            return all(self.initializes(n, known) for n in node.args)
        return called.endswith(INITIALIZERS) and not getattr(node, "args", [])

    def lines(self, node: ast.AST) -> tuple[int, int]:
        """Returns start and end of the lines of a statement."""
        text = self.program.text
        start, end = self.program.span(node)
        return text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)


def defines(node: ast.AST) -> bool:
    """Whether a node is a function or a class, which builds when it is called."""
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def straight(program: Program, tf: str) -> Program:
    """Returns a program whose graph is not built in a block of its session, if it is in one.

    Such blocks are `with sess.as_default():`, and `with tf.Graph().as_default():` around that or
    around `with tf.Session() as sess:`. Nor is it in several blocks in a row that are the same, nor
    in a block within another with what runs it.
    """
    while True:
        edit = _edit(program, tf) or _continued(program, tf) or _ended(program, tf)
        if edit is None:
            return program
        program = program.after([edit])


def _continued(program: Program, tf: str) -> Edit | None:
    """Returns the edit that leaves out the line of a block like that in front of it."""
    region, text = Region(program, tf), program.text
    for before in filter(region.takes, program.nodes(ast.With)):
        if not _is_block(region.kinds, before):
            continue
        parent: Any = region.parents[before]
        bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        body = next(b for b in bodies if isinstance(b, list) and before in b)
        after: Any = [*body, None][body.index(before) + 1]
        if not isinstance(after, ast.With) or any(i.optional_vars for i in after.items):
            continue
        heads = [text[program.span(n)[0] : program.colon(n)] for n in (before, after)]
        starts = [Pieces(program).lines(n.body[0])[0] for n in (before, after)]
        firsts = [program.span(n.body[0])[0] for n in (before, after)]
        indents = [text[text.rfind("\n", 0, f) + 1 : f] for f in firsts]
        line = text.rfind("\n", 0, program.span(after)[0]) + 1
        if heads[0] == heads[1] and indents[0] == indents[1] and line < starts[1]:
            return Edit(line, starts[1], "")
    return None


def _ended(program: Program, tf: str) -> Edit | None:
    """Returns the edit that ends a block of a device or a scope, in another, before the session."""
    kinds, pieces = Kinds(program, tf), Pieces(program)
    for node in program.nodes(ast.With):
        called = {kinds.called(item.context_expr) for item in node.items}
        ends = [i for i, s in enumerate(node.body) if kinds.uses_session(s)]
        end = ends[0] if ends and called <= {"device", "name_scope", "variable_scope"} else 0
        if not isinstance(program.parents[node], ast.With) or not any(
            map(kinds.trains, node.body[:end])
        ):
            continue
        while kinds.is_tool(node.body[end - 1]):
            end -= 1
        alone, rest = pieces.alone(node), node.body[end:]
        if alone is not None and pieces.alone(rest[0]) is not None:
            indent = program.text[alone[0] : program.span(node)[0]]
            return Edit(pieces.lines(rest[0])[0], alone[1], pieces.take(rest, [], indent))
    return None


def fronted(program: Program, tf: str) -> Program:
    """Returns a program with hooks, and what shapes of inputs need, in front of its block.

    Unless they are made of what the block builds.
    """
    kinds, pieces = Kinds(program, tf), Pieces(program)
    for block in program.nodes(ast.With):
        trains = [s for s in block.body if kinds.trains(s)]
        if not trains or not _is_block(kinds, block):
            continue
        front = block.body[: block.body.index(trains[-1])]
        plain = [s for s in front if isinstance(s, (ast.Assign, ast.AugAssign))]
        hooks = [s for s in plain if kinds.uses_session(s) and not _makes(kinds, s)]
        apart = [s for s in plain if s in hooks or not (kinds.builds(s) or _runs(s))]
        apart = independent(apart, block.body)
        inputs = [n for s in block.body for n in ast.walk(s) if kinds.is_input(n)]
        around = [n for s in block.body for n in ast.walk(s) if isinstance(n, ast.With)]
        around = [w for w in around if any(n in ast.walk(w) for n in inputs)]
        inputs += [i.context_expr for w in around for i in w.items if kinds.is_scope(i)]
        wanted = set().union(*map(used, inputs), *(scopes.bound([s]) for s in hooks))
        moved, _ = pieces.needed(wanted, apart)
        start = program.span(block)[0]
        line = program.text.rfind("\n", 0, start) + 1
        if moved and not any(pieces.alone(s) is None for s in moved):
            cuts = [Edit(*pieces.lines(s), "") for s in moved]
            text = pieces.take(moved, [], program.text[line:start])
            return fronted(program.after([Edit(line, line, text), *cuts]), tf)
    return program


def _makes(kinds: Kinds, statement: ast.stmt) -> bool:
    """Whether a statement makes a session."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return any(kinds.makes_session(c) or kinds.called(c) in PLAIN for c in calls)


def _runs(statement: ast.stmt) -> bool:
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return any(last(call) in ("run", "eval") for call in calls)


def _edit(program: Program, tf: str) -> Edit | None:
    """Returns the edit that writes the first such block without what makes the default."""
    kinds, sessions = Kinds(program, tf), Region(program, tf).sessions
    blocks = [n for n in program.nodes(ast.With) if kinds.trains(n)]
    graphs = [n for n in blocks if any(kinds.is_graph(i.context_expr) for i in n.items)]
    for node in blocks:
        dropped = [item for item in node.items if default_name(item.context_expr) in sessions]
        runs = [s for s in node.body if kinds.uses_session(s)]
        is_around = any(kinds.uses_session(item) for item in node.items)
        is_around = is_around or (bool(runs) and kinds.trains(runs[0]))
        if is_around and len(graphs) == 1:
            dropped += [item for item in node.items if kinds.is_graph(item.context_expr)]
        names = {getattr(item.optional_vars, "id", "") for item in dropped}
        is_plain = node.body[0].lineno > node.lineno and not names & used(program.tree)
        alone = Pieces(program).alone(node)
        if dropped and is_plain and alone is not None:
            left = [_text(program, item) for item in node.items if item not in dropped]
            start = program.span(node)[0]
            if left:
                return Edit(start, program.colon(node), f"with {', '.join(left)}:")
            indent = program.text[alone[0] : start]
            return Edit(*alone, Pieces(program).take(node.body, [], indent))
    return None


def _is_block(kinds: Kinds, statement: ast.With) -> bool:
    return any(kinds.is_block(item.context_expr) for item in statement.items)


def _text(program: Program, item: Any) -> str:
    text = program.expression(item.context_expr)
    return f"{text} as {program.expression(item.optional_vars)}" if item.optional_vars else text
