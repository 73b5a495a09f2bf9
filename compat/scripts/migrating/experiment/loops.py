"""The loops in which a program makes its batches."""

from __future__ import annotations

import ast
import re
from typing import Any

from compat.scripts.migrating.experiment.feeding import Feeding
from compat.scripts.migrating.steps import scopes
from compat.scripts.migrating.steps.pieces import Pieces, used


class Loops:
    """The loops around the call that trains, with the statements that make a batch.

    Attributes:
      lines: these, up to where a batch is there.
      indent: of what follows them.
      wanted: the names that they need.
    """

    def __init__(
        self, feeding: Feeding, pieces: Pieces, values: set[str], settings: dict[str, str]
    ) -> None:
        """Takes them out of the program, or raises `UserError`.

        Args:
          feeding: of the program.
          pieces: of it.
          values: the names that are fed.
          settings: how long it trains; `epochs` is changed where each epoch has other batches.
        """
        self._feeding, self._pieces = feeding, pieces
        self._inner, self.wanted = pieces.needed(values, feeding.local)
        for statement in self._inner:
            if feeding.graph.runs(statement):
                feeding.graph.refuse(statement, "what it feeds is computed by its session")
        headers = self._headers(settings)
        for name in sorted(self.wanted & self._changing(headers)):
            feeding.graph.refuse(feeding.call, f"what it feeds depends on {name}, see its loop")
        self.lines, self.indent = "", " " * 8
        for loop in feeding.loops:
            if loop in headers:
                self.lines += f"{self.indent}{headers[loop][0]}\n"
                self.indent += "    "
                self.wanted |= used(loop.iter) if isinstance(loop, ast.For) else set()
            own = [s for s in self._inner if feeding.loop_of(s) is loop]
            self.lines += pieces.take(own, [], self.indent)

    def _headers(self, settings: dict[str, str]) -> dict[Any, tuple[str, set[str]]]:
        """Returns the lines of those loops that make different batches, and what these bind."""
        loops, found = self._feeding.loops, {}
        texts = "".join(map(self._pieces.text, [*self._inner, self._feeding.call]))
        is_random = bool(re.search(r"\brandom\b", texts))  # Each epoch has batches of its own.
        for loop in loops:
            target: Any = getattr(loop, "target", None)
            names = scopes.bound([target]) if target is not None else set()
            if "max_steps" in settings and (len(loops) == 1 or isinstance(loops[-1], ast.While)):
                counter = min(self.wanted & (names | self._feeding.counters()), default="_")
                if loop is loops[-1]:
                    found[loop] = f"for {counter} in range(self.settings.max_steps):", {counter}
            elif isinstance(loop, ast.For) and (
                loop is loops[-1] or is_random or names & self.wanted
            ):
                text = self._pieces.text
                found[loop] = f"for {text(target)} in {text(loop.iter)}:", names
                if loop is not loops[-1] or len(loops) == 1:
                    settings["epochs"] = "1"
        if not found:
            self._feeding.graph.refuse(self._feeding.call, "how many batches it makes is not known")
        return found

    def _changing(self, headers: dict[Any, tuple[str, set[str]]]) -> set[str]:
        """Returns the names that the loops also bind in other statements than those taken."""
        loops = self._feeding.loops
        targets = [loop.target for loop in headers if isinstance(loop, ast.For)]
        last_ones = [s for s in self._inner if self._feeding.loop_of(s) is loops[-1]]
        fresh = [s for s in last_ones if isinstance(s, ast.Assign) and not _uses_itself(s)]
        known = scopes.bound(fresh).union(*(names for _, names in headers.values()))
        return scopes.bound(loops, without=[*self._inner, *targets]) - known


def _uses_itself(statement: ast.Assign) -> bool:
    return bool(used(statement) & scopes.bound([statement]))
