"""Merges the output of several processes into one stream, line by line.

A progress bar, which a process writes over itself after each carriage return, stays below the lines
on a terminal and is left out elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any, Iterator, Sequence, TextIO

# Each process gets this variable: the columns for its lines on the terminal; empty without one.
_VARIABLE = "COMPAT_TERMINAL_COLUMNS"
_ERASE_LINE = "\r\033[K"
_NO_STATUS = ("", "")


def shown(line: bytes) -> str:
    """Returns the text that a terminal shows for a line with carriage returns."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "backslashreplace")


def without_hidden(line: bytes) -> bytes:
    """Removes from a line the text that later text has overwritten.

    Otherwise the line of a progress bar would grow as long as its process runs.
    """
    text = line.rstrip(b"\r")
    end = b"\r" if len(text) < len(line) else b""
    return text[max(text.rfind(b"\r"), 0) :] + end


def terminal_columns(stream: TextIO) -> int | None:
    """Returns the columns of the terminal that shows a stream, or None without a terminal.

    Returns 0 if the stream is itself a terminal, whose columns can be read whenever needed.
    """
    if stream.isatty():
        return 0
    columns = os.environ.get(_VARIABLE, "")
    return int(columns) if columns.isdigit() else None


def open_streams() -> None:
    """Makes this process ignore errors of its output; called at the start of a program.

    A closed standard stream, as by `>&-`, is replaced by the null device, so that no file that is
    opened later gets its number. Output that cannot be written, as on a full disk, is lost. A pipe
    whose reader has exited still raises a `BrokenPipeError`.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)  # A file that was opened later may have its number.
            except OSError:
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115
    stream = sys.stdout
    # The original stream is still in use.
    if type(stream) is io.TextIOWrapper and stream is sys.__stdout__:
        options: Any = {"encoding": stream.encoding, "errors": stream.errors}
        options.update(line_buffering=stream.line_buffering, write_through=stream.write_through)
        sys.stdout = _Lossy(stream.buffer, **options)
        atexit.register(_end, sys.stdout)


class _Lossy(io.TextIOWrapper):
    """A stream that drops output that cannot be written, without an error."""

    def write(self, text: str) -> int:
        with _losing():
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with _losing():
            super().flush()


@contextlib.contextmanager
def _losing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        pass


def _end(stream: _Lossy) -> None:
    """Discards buffered output that cannot be written, since Python's exit would fail."""
    if stream.closed:  # A child of `multiprocessing` has a closed stream.
        return
    try:
        super(_Lossy, stream).flush()
    except BrokenPipeError:
        pass
    except (OSError, ValueError):
        discard(stream)


def open_log(path: str | Path, mode: str = "w") -> TextIO:
    """Opens a file; lines that cannot be written to it are dropped without an error."""
    raw: Any = open(path, f"{mode}b", buffering=0)  # noqa: SIM115
    return _Lossy(raw, encoding="utf-8", write_through=True)


def discard(stream: TextIO) -> None:
    """Discards the buffered and all later output of a stream whose reader has exited."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


class Output:
    """Writes the lines of named processes to a stream, each after "[name] "; does not flush."""

    def __init__(self, out: TextIO, names: Sequence[str]) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._prefixes = {name: f"[{name}] " for name in names}
        self._colors: dict[str, str] = {}
        if self._is_terminal and not os.environ.get("NO_COLOR"):  # See no-color.org.
            self._colors = {name: f"\033[{31 + index % 6}m" for index, name in enumerate(names)}
        self._status = _NO_STATUS  # The process and the progress in the last line.

    def environment(self) -> dict[str, str]:
        """Returns the variables by which each process knows the width of the terminal."""
        if not self._is_terminal:
            return {_VARIABLE: ""}
        return {_VARIABLE: str(max(min(map(self._room, self._prefixes)), 1))}

    def write(self, name: str, lines: Sequence[str], rest: bytes) -> None:
        """Writes finished lines of a process, and the progress in its unfinished line `rest`."""
        progress = shown(rest).rstrip() if self._is_terminal and b"\r" in rest else ""
        status = self._status
        if progress:
            status = (name, progress)
        elif status[0] == name:
            status = _NO_STATUS
        if not lines and status == self._status:
            return
        self.clear()
        self._put("".join(f"{self._prefix(name)}{line}\n" for line in lines))
        self._status = status
        if status[1]:
            self._put(self._prefix(status[0]) + status[1][: max(self._room(status[0]), 0)])

    def clear(self) -> None:
        """Erases the progress until the next `write`, so that other code can print lines."""
        if self._status[1]:
            self._put(_ERASE_LINE)
            self._status = _NO_STATUS

    def _prefix(self, name: str) -> str:
        prefix = self._prefixes[name]
        return f"{self._colors[name]}{prefix}\033[0m" if name in self._colors else prefix

    def _room(self, name: str) -> int:
        """Returns how many columns are left after the prefix of `name`.

        The last column is left free, since a terminal may wrap a line that fills it.
        """
        try:
            columns = os.get_terminal_size(self._out.fileno()).columns or 80
        except (OSError, ValueError):
            columns = 80
        return columns - len(self._prefixes[name]) - 1

    def _put(self, text: str) -> None:
        # The encoding of this stream may lack characters of the process.
        encoding = self._out.encoding or "utf-8"
        self._out.write(text.encode(encoding, "backslashreplace").decode(encoding))
