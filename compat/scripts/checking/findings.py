"""Findings of `compat check` and their kinds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of finding.

    Attributes:
      name: one word, shown after the message.
      level: "note", "warning" or "error"; the last two make the check fail.
      says: description of the kind.
    """

    name: str
    level: str
    says: str


SERVED = Kind("served", "note", "gone from TensorFlow; compat run serves it")
GRAPH = Kind("graph", "note", "needs a graph; TensorFlow 2 runs eagerly, compat run builds one")
HOST = Kind("host", "note", "an address that is fixed in the script")
FOLDER = Kind("folder", "note", "a path that is fixed in the script")
CHANGES = Kind("changes", "warning", "means something else today, without an error")
FAILS = Kind("fails", "error", "does not work, not even under compat run")
UNREADABLE = Kind("unreadable", "error", "cannot be read as Python 3, Python 2 or a notebook")

KINDS = (SERVED, GRAPH, HOST, FOLDER, CHANGES, FAILS, UNREADABLE)


@dataclass(frozen=True)
class Finding:
    """A finding at a position in a script.

    Attributes:
      kind: one of `KINDS`.
      file: the path of the script or notebook.
      cell: the number of the notebook's code cell, or 0 in a script.
      line: from one, in the file or the cell.
      column: from one, in characters.
      name: what it is about, such as "tf.mul" or "localhost:2222".
      message: a sentence.
      served_by: what serves the name, or "".
      gone: the release that removed the name, or "".
    """

    kind: Kind
    file: str
    cell: int
    line: int
    column: int
    name: str
    message: str
    served_by: str = ""
    gone: str = ""

    @property
    def fails(self) -> bool:
        """Whether a check with this finding fails."""
        return self.kind.level != "note"

    @property
    def place(self) -> str:
        """The position, in the form that compilers print."""
        cell = f" [cell {self.cell}]" if self.cell else ""
        return f"{self.file}{cell}:{self.line}:{self.column}"
