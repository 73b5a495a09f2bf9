"""Merges the output of several processes into one stream, line by line.

A progress bar, which a process writes over itself after each carriage return, stays below the lines
on a terminal and is left out elsewhere.
"""

from __future__ import annotations

import os
from typing import Mapping, Sequence, TextIO

# Set for each process: how many columns of our terminal its lines have; empty if there is none.
_VARIABLE = "COMPAT_TERMINAL_COLUMNS"
_ERASE_LINE = "\r\033[K"


def split_lines(text: bytes) -> tuple[list[str], bytes]:
    """Returns the finished lines of an output, as they are shown in the end, and the rest."""
    *lines, rest = text.split(b"\n")
    return [shown(line) for line in lines], rest


def shown(line: bytes) -> str:
    """Returns what a terminal shows of a line that is written over after carriage returns."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "backslashreplace")


def terminal_columns(stream: TextIO, environment: Mapping[str, str] = os.environ) -> int | None:
    """Returns the width of the terminal that shows `stream`, be it through `Output`.

    Returns:
      The number of columns; 0 if the terminal is to be asked itself; None if there is none.
    """
    if stream.isatty():
        return 0
    columns = environment.get(_VARIABLE, "")
    return int(columns) if columns.isdigit() else None


class Output:
    """Writes the lines of named processes, each after "[name] "; not yet flushed.

    Args:
      out: the stream.
      names: the processes.
    """

    def __init__(self, out: TextIO, names: Sequence[str]) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._prefixes = {name: f"[{name}] " for name in names}
        self._colors = {name: f"\033[{31 + index % 6}m" for index, name in enumerate(names)}
        self._status = ("", "")  # A process and its progress, which the last line shows.

    def environment(self) -> dict[str, str]:
        """Returns what each process is told about the terminal."""
        if not self._is_terminal:
            return {_VARIABLE: ""}
        width = max(len(prefix) for prefix in self._prefixes.values())
        # In its last column a terminal would begin a new line.
        return {_VARIABLE: str(max(self._columns() - width - 1, 1))}

    def write(self, name: str, lines: Sequence[str], rest: bytes = b"") -> None:
        """Writes lines of a process.

        Args:
          name: the process.
          lines: the finished ones.
          rest: what it has written after them, with a carriage return where it is progress.

        Raises:
          BrokenPipeError: the stream is not read any more.
        """
        progress = shown(rest).rstrip() if self._is_terminal and b"\r" in rest else ""
        status = (name, progress) if progress else self._status
        if not progress and self._status[0] == name:
            status = ("", "")
        if not lines and status == self._status:
            return
        self.clear()
        self._put("".join(f"{self._prefix(name)}{line}\n" for line in lines))
        self._status = status
        if status[1]:
            room = self._columns() - len(self._prefixes[status[0]]) - 1
            self._put(self._prefix(status[0]) + status[1][: max(room, 0)])

    def clear(self) -> None:
        """Erases the progress, for lines that are written by others, until the next `write`."""
        if self._status[1]:
            self._put(_ERASE_LINE)
            self._status = ("", "")

    def _prefix(self, name: str) -> str:
        prefix = self._prefixes[name]
        return f"{self._colors[name]}{prefix}\033[0m" if self._is_terminal else prefix

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def _put(self, text: str) -> None:
        # A process may write what our own output cannot encode.
        encoding = self._out.encoding or "utf-8"
        self._out.write(text.encode(encoding, "backslashreplace").decode(encoding))
