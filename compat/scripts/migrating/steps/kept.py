"""Functions that make a session and train nothing, such as `evaluate`: they stay as they are."""

from __future__ import annotations

import ast
import re
from typing import Any

from compat.scripts.migrating import migration
from compat.scripts.migrating.steps.kinds import PLAIN, Kinds, last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.migrating.steps.region import defines
from compat.scripts.rules.program import Edit, Program, Remark
from compat.scripts.source import scopes

_WHY = (
    "{name} has a graph and a session of its own and stays as it was, for the legacy runtime; "
    "for the modern one write `with {tf}.Graph().as_default():` around what it does"
)


class Kept:
    """Those functions of a program.

    Attributes:
      program: the same, where each of them does nothing but use the names of the module.
    """

    def __init__(self, program: Program, tf: str) -> None:
        self._tf, self._kinds = tf, Kinds(program, tf)
        self._bodies: dict[str, tuple[str, str]] = {}  # Names and texts, by what stands for them.
        top: list[Any] = program.tree.body
        pieces = Pieces(program)
        training = self._training(top)
        found = [s for s in top if s not in training and self._is_whole(s)] if training else []
        words = {node.id for node in program.nodes(ast.Name)}
        edits = []
        for function in found:
            (start, _), (_, end) = map(pieces.lines, (function.body[0], function.body[-1]))
            indent = program.text[start : program.span(function.body[0])[0]]
            word = scopes.free(f"{function.name}_as_it_was", words)
            words.add(word)
            names = sorted({n.id for n in scopes.uses(function, scopes.bound(top) - {tf})})
            self._bodies[word] = function.name, program.text[start:end]
            edits.append(Edit(start, end, f"{indent}{word}({', '.join(names)})\n"))
        self.program = program.after(edits) if edits else program

    def remarks(self, program: Program) -> list[Remark]:
        """Returns what is said of them in a program that was made of `program`."""
        calls = [call for call in program.nodes(ast.Call) if last(call) in self._bodies]
        names = [self._bodies[last(call)][0] for call in calls]
        return [Remark(c, _WHY.format(name=n, tf=self._tf)) for c, n in zip(calls, names)]

    def restored(self, migrated: migration.Migrated) -> migration.Migrated:
        """Returns a migrated program with them as they were, perhaps in a comment."""
        text = migrated.text
        for word, (_, body) in self._bodies.items():
            place = re.search(rf"^(# )?[ \t]*{word}\(.*\)\n", text, re.MULTILINE)
            if place is not None:
                sign = place[1] or ""
                lines = [
                    f"{sign}{line}".rstrip() if sign else line for line in body.split("\n")[:-1]
                ]
                text = text[: place.start()] + "\n".join(lines) + "\n" + text[place.end() :]
        return migrated._replace(text=text, remarks=migration.remarks_in(text))

    def _training(self, top: list[Any]) -> set[Any]:
        """Returns the statements that train, and definitions that do so by others."""
        found = {statement for statement in top if self._kinds.trains(statement)}
        while True:
            names = {getattr(statement, "name", "") for statement in found} - {""}
            definitions = (s for s in top if defines(s) and s not in found)
            more = {s for s in definitions if used(s) & names}
            if not more:
                return found
            found |= more

    def _is_whole(self, function: Any) -> bool:
        """Whether a function makes a session, and all that it runs, of inputs of its own."""
        is_function = isinstance(function, ast.FunctionDef)
        if not is_function or function.body[0].lineno == function.lineno:
            return False
        nodes = [node for statement in function.body for node in ast.walk(statement)]
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        has_session = any(self._kinds.called(call) in PLAIN for call in calls)
        if not (has_session and any(map(self._kinds.is_input, calls))):
            return False
        own = (scopes.bound(function.body) - scopes.parameters(function)) | {self._tf}
        fetches = [call.args[0] for call in calls if last(call) == "run" and call.args]
        return all(used(fetch) <= own for fetch in fetches)
