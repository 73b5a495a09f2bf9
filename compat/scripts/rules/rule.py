"""Defines rules, and the findings of `compat check` that they yield."""

from __future__ import annotations

import ast
from typing import Callable, Iterator, NamedTuple, Union

from compat.scripts.reading.program import Edit, Program, Remark


class Kind(NamedTuple):
    """A kind of finding; the levels "warning" and "error" make the check fail, "note" does not."""

    name: str
    level: str
    says: str


SERVED = Kind("served", "note", "gone; compat run serves it")
GRAPH = Kind("graph", "note", "needs a graph; TensorFlow 2 runs eagerly, compat run builds one")
HOST = Kind("host", "note", "an address that is fixed in the script")
FOLDER = Kind("folder", "note", "a path that is fixed in the script")
CHANGES = Kind("changes", "warning", "means something else today, without an error")
FAILS = Kind("fails", "error", "does not work, not even under compat run")
UNREADABLE = Kind("unreadable", "error", "cannot be read as Python 3, Python 2 or a notebook")

KINDS = (SERVED, GRAPH, HOST, FOLDER, CHANGES, FAILS, UNREADABLE)


class Finding(NamedTuple):
    """A message about a name or a string in a script; `check` adds its position."""

    rule: str  # The id of a rule.
    kind: Kind
    name: str  # Such as "tf.mul" or "localhost:2222".
    message: str
    served_by: str = ""
    gone: str = ""  # The release that removed the name.
    file: str = ""
    cell: int = 0  # The number of the notebook's code cell, or 0 in a script.
    line: int = 1  # From one, in the file or the cell.
    column: int = 1  # From one, in characters.

    @property
    def fails(self) -> bool:
        """Whether a check with this finding fails."""
        return self.kind.level != "note"

    @property
    def place(self) -> str:
        """The position, in the form that compilers print."""
        cell = f" [cell {self.cell}]" if self.cell else ""
        return f"{self.file}{cell}:{self.line}:{self.column}"


class Found(NamedTuple):
    """A use that a rule has found: a node, and the text in it that `check` points at."""

    node: ast.AST
    spelled: str  # "/" is the operator before the node.
    finding: Finding


Finder = Callable[[Program], Iterator[Found]]
Rewriter = Callable[[Program], Iterator[Union[Edit, Remark]]]


class Rule(NamedTuple):
    """A change since 2016, with an example, which is its test."""

    id: str
    gone: str  # The release of TensorFlow, Python or NumPy that no longer accepts the uses.
    says: str
    before: str  # An example, of a script that has imported TensorFlow as `tf`.
    after: str = ""  # Its migrated form; without one, `migrate` leaves the use as it is.
    optional: bool = False  # Whether `compat.v1` also accepts the use as it is.
    find: Finder = lambda _: iter(())
    rewrite: Rewriter = lambda _: iter(())
