"""What there is to find, and a finding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of finding.

    Attributes:
      name: in one word.
      level: "note", "warning" or "error"; what is more than a note has the check fail.
      says: what all findings of the kind have in common.
    """

    name: str
    level: str
    says: str


SERVED = Kind("served", "note", "gone from TensorFlow; compat run serves it")
GRAPH = Kind("graph", "note", "needs a graph, where TensorFlow 2 runs eagerly; compat run has one")
HOST = Kind("host", "note", "an address that is the script's own")
FOLDER = Kind("folder", "note", "a path that is the script's own")
CHANGES = Kind("changes", "warning", "means something else today, and nothing says so")
FAILS = Kind("fails", "error", "does not work, not even under compat run")
UNREADABLE = Kind("unreadable", "error", "cannot be read as Python 3, Python 2 or a notebook")

KINDS = (SERVED, GRAPH, HOST, FOLDER, CHANGES, FAILS, UNREADABLE)


@dataclass(frozen=True)
class Finding:
    """Something that is worth knowing about a place in a script.

    Attributes:
      kind: one of `KINDS`.
      file: the path of the script or notebook.
      cell: the number of the notebook's cell of code, or 0 in a script.
      line: from one, in the file or the cell.
      column: from one, in characters.
      name: what it is about, such as "tf.mul" or "localhost:2222".
      message: a sentence.
      served_by: what serves the name, or "".
      gone: the release without the name, or "".
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
        """Where it is, as compilers say it."""
        cell = f" [cell {self.cell}]" if self.cell else ""
        return f"{self.file}{cell}:{self.line}:{self.column}"
