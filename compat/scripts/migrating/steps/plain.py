"""A program with a plain session, written as one with a supervisor and a block.

`tf.Session` runs graphs, and waits for nobody. What it needs to run steps is little: a supervisor
that opens it, and what builds the graph in one place, before.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator

from compat.scripts.migrating.steps import expressions, inlining
from compat.scripts.migrating.steps.kinds import Kinds, last, made_by_run
from compat.scripts.migrating.steps.pieces import used
from compat.scripts.migrating.steps.region import INITIALIZERS, Region, defines, fronted, straight
from compat.scripts.rules.program import Edit, Program
from compat.scripts.source import literals, scopes

# Made of all of the graph, whatever they are given.
_OF_ALL = ("train.Saver", "summary.merge_all", "merge_all_summaries", *INITIALIZERS)
_OF_DICTIONARIES = ("values", "items", "keys", "get", "copy")  # No tensors.


def supervised(program: Program, tf: str) -> Program:
    """Returns the program with a supervisor for its plain session, and a block for its graph."""
    program = inlining.inlined(expressions.written(program, tf), tf, _makes_inputs)
    program = straight(program, tf)
    for rewrite in (_Plain.by_run, _Plain.gathered, _Plain.with_block):
        found = _Plain(program, tf)
        if found.body and (found.creations or rewrite is not _Plain.by_run):
            program = program.after(rewrite(found))
    return fronted(program, tf)


def _makes_inputs(program: Program, function: inlining.Function) -> bool:
    """Whether a function makes placeholders, and all of the program's calls are one."""
    kinds = Kinds(program, function.tf)
    makes = any(map(kinds.is_input, ast.walk(function.node)))
    return makes and is_part(program, function, kinds)


def is_part(program: Program, function: inlining.Function, kinds: Kinds) -> bool:
    """Whether a function is called once, for what it returns, and runs no session."""
    calls = inlining.calls(program, function)
    parents = program.parents
    runs = any(last(n) == "run" for n in ast.walk(function.node) if isinstance(n, ast.Call))
    is_used = len(calls) == 1 and not isinstance(parents[calls[0]], ast.Expr)
    return is_used and not runs and not kinds.uses_session(function.node)


class _Plain(Region):
    def __init__(self, program: Program, tf: str) -> None:
        super().__init__(program, tf)
        self.edits: list[Edit] = []
        self.gone: set[ast.AST] = set()

    def by_run(self) -> list[Edit]:
        """Writes what runs without the session's `run`, and drops runs of initializers."""
        joining = [call for call in self.creations if self._joins(call)]
        for call in joining:
            self._session(call, "is_chief=False")
        self.creations = [call for call in self.creations if call not in joining]
        self._initialized()
        self._methods()
        return self.edits

    def gathered(self) -> list[Edit]:
        """Opens the session by a supervisor, behind all that builds."""
        later = [*self._later()] if self.creations else []
        tools = [s for s in [*self.region, *later] if self.creations and self.kinds.is_tool(s)]
        moved = [self._moved(s) for s in later if s not in tools] + self._named(later)
        # A saver adds to the graph, which is complete when the session opens.
        tail = [self._moved(statement) for statement in tools]
        tail += [line for call in self.creations for line in self._session(call)]
        _, end = self.lines(self.region[-1])
        self.edits.append(Edit(end, end, "".join([*moved, *tail])))
        return self.edits

    def _moved(self, statement: ast.stmt) -> str:
        """Cuts a statement out; returns its lines, as they are in the region."""
        start, end = self.lines(statement)
        lines = self.program.text[start:end]
        own = lines[: len(lines) - len(lines.lstrip(" \t"))]
        self.edits.append(Edit(start, end, "" if self._has_others(statement) else f"{own}pass\n"))
        return re.sub(rf"(?m)^{own}", self.indent, lines)

    def _has_others(self, statement: ast.stmt) -> bool:
        parent: Any = self.parents[statement]
        bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        self.gone.add(statement)
        return any(statement in b and set(b) - self.gone for b in bodies if isinstance(b, list))

    def _initialized(self) -> None:
        """Removes runs of initializers: a supervisor has run them."""
        known = self.initializers()
        for statement in self.program.nodes(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call) or last(call) != "run":
                continue
            owner: Any = call.func
            target: Any = call.args[0] if call.args else getattr(owner, "value", None)
            if self.initializes(target, known) and not self._is_again(statement):
                self._moved(statement)
                self.gone.update(ast.walk(target))
        # Also in functions, which have names of their own.
        uses = [n for n in self.program.nodes(ast.Name) if isinstance(n.ctx, ast.Load)]
        left = {name.id for name in uses if name not in self.gone}
        for node in self.program.nodes(ast.Assign):
            if self.initializes(node.value, known) and not scopes.bound([node]) & left:
                self._moved(node)

    def _is_again(self, statement: ast.stmt) -> bool:
        """Whether a session has run before a statement, or runs it several times."""
        node: Any = statement
        while node in self.parents and not isinstance(node, ast.FunctionDef):
            node = self.parents[node]
            if {*ast.walk(node)} & {*self.creations}:
                break
            if isinstance(node, (ast.For, ast.While)):
                return True
        inside: list[Any] = [*scopes.own_nodes(ast.iter_child_nodes(node))]
        runs = [c for c in inside if isinstance(c, ast.Call) and last(c) in ("run", "eval")]
        known, span = self.initializers(), self.program.span
        others = [c for c in runs if not (c.args and self.initializes(c.args[0], known))]
        return any(span(call) < span(statement) for call in others)

    def _later(self) -> Iterator[ast.stmt]:
        """Yields the statements behind a run that build more of the graph."""
        available = set(self.built)
        late: set[str] = set()
        waiting: list[Any] = [*self.body[self.end :]]
        while waiting:
            statement = waiting.pop(0)
            inner = {n for n in ast.walk(statement) if isinstance(n, ast.withitem)}
            opens = any(item.context_expr in self.creations for item in inner)
            if opens and isinstance(statement, (ast.If, ast.With)):
                # Also in a branch: what it builds is in the graph of the others as well.
                waiting = [*getattr(statement, "orelse", []), *waiting, *statement.body]
                late |= scopes.bound(getattr(statement, "items", []))
                continue
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
            is_graph = isinstance(statement, ast.Assign) and not self.runs(statement)
            builds = self.kinds.builds(statement) or names & self.built
            value: Any = getattr(statement, "value", None)
            is_whole = self.kinds.called(value).endswith(_OF_ALL)
            if is_graph and builds and (names & available or is_whole) and not names & late:
                available |= scopes.bound([statement])
                yield statement
            elif not defines(statement):
                late |= scopes.bound([statement])

    def _named(self, later: list[ast.stmt]) -> list[str]:
        """Names what calls of `run` build, as `queue.close()`; returns the lines that build it.

        A plain session takes what is built behind it, while a supervisor makes its graph final.
        """
        graph = [*self.region, *later]
        tensors = scopes.bound(graph) - scopes.bound(self.body, without=graph)
        taken = {node.id for node in self.program.nodes(ast.Name)} | {"_"}
        named: dict[str, str] = {}
        for call in scopes.own_nodes(self.body[self.end :] if self.creations else []):
            for node in made_by_run(call, self.sessions):
                names, method = used(node), last(node)
                path = [*literals.dotted(node.func).split(".")]
                is_built = path[0] in tensors - {""} or bool(self.kinds.called(node))
                is_used = names & tensors or self.initializes(node, set())
                if is_built and is_used and names <= tensors | {self.tf}:
                    text = self.program.expression(node)
                    if method in _OF_DICTIONARIES:
                        continue
                    if text not in named:
                        start = f"{path[0]}_{method}" if path[0] in tensors else method
                        named[text] = scopes.free(start, {*taken, *named.values()})
                    self.edits.append(Edit(*self.program.span(node), named[text]))
        return [f"{self.indent}{name} = {text}\n" for text, name in named.items()]

    def _joins(self, call: ast.Call) -> bool:
        """Whether a session has the variables of a cluster that another one initializes.

        Such as one that evaluates, or that of a thread.
        """
        targets = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "target")]
        names = {node.id for node in targets if isinstance(node, ast.Name)}
        home = [n for n in ast.walk(self.program.enclosing(call)) if isinstance(n, ast.Assign)]
        targets += [s.value for s in home if scopes.bound([s]) & names]
        others: list[Any] = [c for c in self.creations if c is not call and self._starts(c)]
        others += [c for c in self.program.nodes(ast.Call) if self.kinds.makes_session(c)]
        is_here = {"None", '""', "''"} & {*map(self.program.expression, targets)}
        if is_here or not (targets and others and self.region) or self._starts(call):
            return False
        statement, built = self.parents[call], self.region[-1]
        if isinstance(statement, ast.withitem):
            return built not in ast.walk(self.parents[statement])
        return self.program.span(built) < self.program.span(call)

    def _starts(self, call: ast.Call) -> bool:
        """Whether a session runs an initializer."""
        statement = self.parents[call]
        home = self.program.enclosing(call)
        block = self.parents[statement] if isinstance(statement, ast.withitem) else home
        calls: list[Any] = [n for n in ast.walk(block) if isinstance(n, ast.Call)]
        runs = [n for n in calls if last(n) == "run"]
        given = [n.args[0] if n.args else getattr(n.func, "value", None) for n in runs]
        known = self.initializers()
        return any(self.initializes(node, known) for node in given)

    def _session(self, call: ast.Call, chief: str | None = None) -> list[str]:
        """Opens a session by a supervisor; returns lines that follow the graph."""
        statement: Any = self.parents[call]
        start, end = self.program.span(call)
        arguments = [self.program.text[slice(*self.program.argument(call, a))] for a in call.args]
        for keyword in call.keywords:
            value = self.program.text[slice(*self.program.argument(call, keyword.value))]
            name = {"target": "master"}.get(str(keyword.arg), keyword.arg)
            if name != "graph":  # The graph in which it is made.
                arguments.append(f"{name}={value}")
        starts = any(last(c) == "start_queue_runners" for c in self.program.nodes(ast.Call))
        arguments += ["start_standard_services=False"] if starts else []
        is_here = not (call.args or any(k.arg == "target" for k in call.keywords))
        chief = ("" if is_here else self._chief()) if chief is None else chief
        words, made = ", ".join(arguments), f"{self.tf}.train.Supervisor({chief})"
        if isinstance(statement, ast.withitem):
            block: Any = self.parents[statement]
            if not any(s in ast.walk(block) for s in self.region):
                self.edits.append(Edit(start, end, f"{made}.managed_session({words})"))
                return []
            name = getattr(statement.optional_vars, "id", "session")
            head = self.program.span(block)[0], self.program.colon(block)
            self.edits.append(Edit(*head, f"with {self.tf}.device(None):"))
        elif isinstance(statement, ast.Assign):
            if self.program.span(statement) > self.program.span(self.region[-1]):
                self.edits.append(Edit(start, end, f"{made}.prepare_or_wait_for_session({words})"))
                return []
            name = getattr(statement.targets[0], "id", "session")
            self._moved(statement)
        else:
            return []
        return [f"{self.indent}{name} = {made}.prepare_or_wait_for_session({words})\n"]

    def _chief(self) -> str:
        """Returns the argument that says which task is the chief, as the server's number does."""
        for call in self.program.nodes(ast.Call):
            if self.kinds.called(call) == "train.Server":
                for word in call.keywords:
                    if word.arg == "task_index":
                        text = self.program.text[slice(*self.program.span(word.value))]
                        return f"is_chief={text} == 0"
        return ""

    def _methods(self) -> None:
        """Writes `loss.eval(feed)` as `sess.run(loss, feed)`."""
        sessions, others = self.sessions, self.sessions | self.kinds.objects
        built = self.built.union(*(scopes.bound([s]) for s in self._later()))
        for call in self.program.nodes(ast.Call):
            owner: Any = getattr(call.func, "value", None)
            is_own = isinstance(owner, ast.Name) and owner.id in built - others
            if is_own and last(call) in ("run", "eval") and call not in self.creations:
                given: Any = {k.arg: k.value for k in call.keywords}
                named = given.get("session")
                session = getattr(named, "id", "") or min(sessions, default="")
                feed = call.args[0] if call.args else given.get("feed_dict")
                words = [owner.id]
                words += [self.program.text[slice(*self.program.span(feed))]] if feed else []
                if session and self.parents[call] not in self.gone:
                    self.edits.append(
                        Edit(*self.program.span(call), f"{session}.run({', '.join(words)})")
                    )
        for node in self.program.nodes(ast.Attribute):
            if node.attr == "graph" and literals.dotted(node.value) in sessions:
                self.edits.append(Edit(*self.program.span(node), f"{self.tf}.get_default_graph()"))

    def with_block(self) -> list[Edit]:
        """Puts the statements that build in a block of their own."""
        region = self.region
        items = getattr(self.parents[region[0]], "items", [])
        if any(self.kinds.is_block(item.context_expr) for item in items):
            return []
        start, end = self.lines(region[0])[0], self.lines(region[-1])[1]
        text = self.program.text
        inside = self.program.inner_lines()
        edits = [Edit(start, start, f"{self.indent}with {self.tf}.device(None):\n")]
        unit = "\t" if self.indent.startswith("\t") else "    "
        position = start
        while position < end:
            following = text.find("\n", position) + 1 or len(text)
            if text[position:following].strip() and position not in inside:
                edits.append(Edit(position, position, unit))
            position = following
        return edits
