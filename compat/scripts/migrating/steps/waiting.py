"""Parameter servers that wait in a session for the workers, which tell them by a queue."""

from __future__ import annotations

import ast
from typing import Any

from compat.scripts.migrating.steps.kinds import PLAIN, Kinds, last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.rules.program import Edit, Program, RefusedError
from compat.scripts.source import literals, scopes

# Of a queue, what servers wait for; and what else they call meanwhile.
_TAKES = ("dequeue", "dequeue_many")
_WAIT = (
    *_TAKES,
    *("run", "close", "print", "format", "str", "range", "xrange", "len", "split", "sleep"),
    *("exit", "_exit", "flush", "time", "now", "info", "debug", "log"),
)


def joined(program: Program, tf: str) -> Program:
    """Returns a program whose parameter servers join, where they waited in a session for a queue.

    The workers say by it that they have finished, which those of `compat` know by themselves: what
    fills the queue is left out. Raises `UserError` where that session does more than wait.
    """
    kinds = Kinds(program, tf)
    for branch in program.nodes(ast.If):
        if "ps" in map(literals.text, ast.walk(branch.test)):
            inside = [node for statement in branch.body for node in ast.walk(statement)]
            made = [node for node in inside if kinds.called(node) in PLAIN]
            if made:
                return joined(program.after(_Waiting(program, kinds, branch, made[0]).edits()), tf)
    return program


class _Waiting:
    """A branch of parameter servers that wait, and the statements of workers for their sake."""

    def __init__(self, program: Program, kinds: Kinds, branch: Any, session: Any) -> None:
        self.program, self.kinds, self.pieces = program, kinds, Pieces(program)
        path = literals.dotted(session.args[0]) if session.args else ""
        self.server, _, target = path.rpartition(".")
        functions = {f.name: f for f in program.nodes(ast.FunctionDef)}
        makers = {name for name, f in functions.items() if self._is_maker(f, set())}
        more = {name for name, f in functions.items() if self._is_maker(f, makers)}
        makes = [self._makes(s, makers | more) for s in branch.body]
        first = next((i for i, makes in enumerate(makes) if makes), 0)
        self.waits = branch.body[first:]
        own = {last(call) for call in _calls(self.waits)} & (makers | more)
        own |= {name for name in more if own & {last(c) for c in _calls([functions[name]])}}
        # Queues that are made before the branch, by which it takes.
        taking = [c.func for c in _calls(self.waits) if last(c) in _TAKES]
        taken = {name for part in taking for name in used(part)}
        made = [n for n in program.nodes(ast.Assign) if scopes.bound([n]) & taken]
        own |= {last(call) for call in _calls(made)} & (makers | more)
        self.makers = [functions[name] for name in sorted(own)]
        self.shared = {self._shared(c) for c in _calls([*self.waits, *made, *self.makers])} - {""}
        others = {last(c) for c in _calls(self.waits) if not kinds.called(c)} - own - {*_WAIT}
        is_joined = target == "target" and self.server and not (others or self._does_more())
        if not is_joined or self.server in scopes.bound(self.waits):
            why = "its parameter servers wait in a session, and those of compat end by themselves"
            remedy = "write server.join() there, or use --to=v1"
            raise RefusedError(program, session, f"{why}; {remedy}")

    def edits(self) -> list[Edit]:
        """Returns the edits that join, and leave out what tells the servers."""
        start, end = self.pieces.lines(self.waits[0])[0], self.pieces.lines(self.waits[-1])[1]
        text, place = self.program.text, self.program.span(self.waits[0])[0]
        indent = text[text.rfind("\n", 0, place) + 1 : place]
        return [Edit(start, end, f"{indent}{self.server}.join()\n"), *self._told()]

    def _is_queue(self, node: ast.AST) -> bool:
        return self.kinds.called(node).endswith("Queue")

    def _is_maker(self, function: Any, others: set[str]) -> bool:
        """Whether a function makes queues and nothing else, perhaps by others."""
        calls = {last(call) for call in _calls(function.body)}
        made = {name for name in calls if name.endswith("Queue")} | (calls & others)
        return bool(made) and calls <= {*made, *_WAIT, "device", "append", "enqueue"}

    def _makes(self, statement: ast.stmt, makers: set[str]) -> bool:
        """Whether a statement makes a session or a queue."""
        calls = _calls([statement])
        made = {self.kinds.called(call) for call in calls} & {*PLAIN}
        return bool(made or {last(call) for call in calls} & makers) or any(
            map(self._is_queue, calls)
        )

    def _shared(self, call: ast.Call) -> str:
        """Returns the name that a queue has in the cluster, as text."""
        words = [k.value for k in call.keywords if k.arg == "shared_name"]
        return self.program.expression(words[0]) if words and self._is_queue(call) else ""

    def _does_more(self) -> bool:
        """Whether the session of the servers runs anything but `dequeue`."""
        taken = [n for s in self.waits for n in ast.walk(s) if isinstance(n, ast.Assign)]
        taken = [n for n in taken if any(last(c) in _TAKES for c in _calls([n.value]))]
        runs = [c.args[0] if c.args else c for c in _calls(self.waits) if last(c) == "run"]
        names = scopes.bound(taken)
        return not runs or not all(
            used(run) & names or any(last(c) in _TAKES for c in _calls([run])) for run in runs
        )

    def _told(self) -> list[Edit]:
        """Returns the edits that leave out what is there for the queues alone."""
        known = {n for s in [*self.waits, *self.makers] for n in ast.walk(s)}
        nodes = [n for n in self.program.nodes(ast.stmt) if n not in known]
        own = {function.name for function in self.makers}
        names: set[str] = set()
        found: set[ast.AST] = set()
        while True:
            before = len(found), len(names)
            for node in nodes:
                part: Any = getattr(node, "iter", node)
                is_simple = isinstance(node, (ast.Assign, ast.Expr, ast.AugAssign, ast.For))
                calls = _calls([part])
                tells = bool(own & {last(c) for c in calls} or used(part) & names)
                tells = tells or any(self._shared(c) in self.shared for c in calls)
                is_list = isinstance(node, ast.Assign) and getattr(node.value, "elts", None) == []
                if is_simple and (tells or (is_list and scopes.bound([node]) & names)):
                    target: Any = getattr(node, "target", node)
                    names |= scopes.bound([target]) | _appended(node)
                    found |= set() if isinstance(node, ast.For) else {node}
            if before == (len(found), len(names)):
                break
        gone = self._gone(self.program.tree.body, found)
        inside = {n for s in gone for n in ast.walk(s)} | known
        left = names | own
        uses: list[Any] = self.program.nodes(ast.Name)
        uses = [n for n in uses if n.id in left and n not in inside]
        for call in _calls(gone):
            first: Any = call.args[0] if last(call) == "run" and call.args else None
            for fetch in getattr(first, "elts", [first] if first is not None else []):
                if not (used(fetch) & names or own & {last(c) for c in _calls([fetch])}):
                    uses.append(fetch)  # It does more than tell.
        if uses:
            return []
        makers = [self.pieces.removed(function) for function in self.makers]
        return [*makers, *(self._cut(statement, gone) for statement in gone)]

    def _gone(self, body: Any, found: set[ast.AST]) -> list[Any]:
        """Returns the outermost of the statements that consist of those found alone."""
        gone: list[Any] = []
        for statement in body:
            bodies = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
            inner = [self._gone(b, found) for b in bodies if isinstance(b, list)]
            parts = [b for b in bodies if isinstance(b, list) and b]
            is_whole = bool(parts) and all([*b] == g for b, g in zip(bodies, inner))
            is_whole = is_whole and not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            if statement in found or is_whole:
                gone.append(statement)
            else:
                gone += [other for part in inner for other in part]
        return gone

    def _cut(self, statement: Any, gone: list[Any]) -> Edit:
        """Returns the edit that leaves out a statement; `pass` stands for the first of a body."""
        start, end = self.pieces.lines(statement)
        parent: Any = self.program.parents[statement]
        bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        is_only = any(statement in b[:1] and all(s in gone for s in b) for b in bodies)
        place = self.program.span(statement)[0]
        line = self.program.text.rfind("\n", 0, place) + 1
        return Edit(start, end, f"{self.program.text[line:place]}pass\n" if is_only else "")


def _calls(nodes: Any) -> list[ast.Call]:
    return [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call)]


def _appended(statement: Any) -> set[str]:
    """Returns the list to which a statement appends."""
    call: Any = getattr(statement, "value", None)
    is_call = isinstance(call, ast.Call) and last(call) in ("append", "extend")
    return {literals.dotted(call.func).rpartition(".")[0]} if is_call else set()
