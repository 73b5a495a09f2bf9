"""The text of a script or notebook as Python 3 code, without touching its file."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import linecache
import re
import sys
import tokenize
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from compat.errors import UserError
from compat.scripts.source import classic

# What parses as Python 3 as well, and has meant something in Python 2 only.
_OLD_METHODS = {"has_key", "iteritems", "iterkeys", "itervalues", "viewitems", "viewkeys"}
_OLD_NAMES = {"basestring", "execfile", "raw_input", "reduce", "unichr", "unicode", "xrange"}
_OLD_MODULES = {
    "ConfigParser",
    "Queue",
    "SocketServer",
    "StringIO",
    "cPickle",
    "commands",
    "cookielib",
    "httplib",
    "urllib2",
    "urlparse",
}
# fissix takes the line out.
_TRUE_DIVISION = re.compile(
    r"(?m)^from[ \t]+__future__[ \t]+import[ \t]+(\([^()]*|[^\n]*)\bdivision\b"
)
_DEPTH = 5000  # Of calls here, for a sum of a thousand terms.
_ASCII = bytes(range(32, 127))


@dataclass(frozen=True)
class Source:
    """A part of a program.

    Attributes:
      filename: shown in tracebacks.
      text: what the user wrote, in Python 3 or 2.
      python2: whether it is Python 2.
    """

    filename: str
    text: str
    python2: bool

    def tree(self) -> ast.Module:
        """Returns the code as a tree of Python 3, with the line numbers of the text.

        Raises:
          SyntaxError: it is neither Python 3 nor Python 2.
          UserError: it lies too deep in itself to be read, or is no text.
        """
        with deep(self.filename):
            if not self.python2:
                return classic.truth(_parse(self.text, self.filename))
            tree = _parse(_to_python3(self.text, self.filename), self.filename)
            if not _TRUE_DIVISION.search(self.text):
                tree = classic.division(tree)
            return classic.truth(classic.strings(tree))

    def code(self) -> types.CodeType:
        """Returns the compiled code.

        Raises:
          SyntaxError: it is neither Python 3 nor Python 2.
          UserError: as `tree`.
        """
        with warnings.catch_warnings(), deep(self.filename):
            warnings.simplefilter("ignore")  # Invalid escapes, `is` with a literal.
            return compile(self.tree(), self.filename, "exec", dont_inherit=True)


@contextlib.contextmanager
def deep(filename: str) -> Iterator[None]:
    """Has room for expressions that lie deep in each other.

    Raises:
      UserError: the room does not do, or the text is one that no file can have.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEPTH))
    try:
        yield
    except (MemoryError, RecursionError):  # Python's parser says it by either.
        raise UserError(
            f"{filename} has expressions that lie too deep in each other to be read; "
            "take them apart"
        ) from None
    except ValueError as error:
        raise UserError(f"{filename} is not text ({error}); save it as UTF-8") from None
    finally:
        sys.setrecursionlimit(limit)


def read(path: str) -> list[Source]:
    """Returns the parts of a script: one, or as many as a notebook has cells of code.

    Raises:
      UserError: there is no such file, or it is no text.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise UserError(
            f"script {path} cannot be read ({error.strerror}); name a Python file or a notebook"
        ) from None
    if path.endswith(".ipynb"):
        return _cells(path, raw)
    return [from_text(_decode(path, raw), path)]


def from_text(text: str, filename: str) -> Source:
    """Returns the source of a text; finds out whether it is Python 2."""
    return Source(filename, text, is_python2(text))


def is_python2(text: str) -> bool:
    """Whether a program is written in Python 2: by its syntax, else by the names that it uses."""
    try:
        with deep(""):
            tree = _parse(text, "")
    except SyntaxError:
        return True
    except UserError:
        return False  # Said when it is read.
    defined = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            defined.update(alias.asname or alias.name for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _OLD_METHODS:
                return True
        elif isinstance(node, ast.Name) and node.id in _OLD_NAMES - defined:
            return True
    return any(_imports(statement) & _OLD_MODULES for statement in tree.body)


def _imports(statement: ast.stmt) -> set[str]:
    """Returns what a statement imports; in a `try`, as in programs for both, it is none itself."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names}
    if isinstance(statement, ast.ImportFrom):
        return {statement.module or ""}
    return set()


def _parse(text: str, filename: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename)


def _decode(path: str, raw: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        if _ASCII.decode(encoding) != _ASCII.decode():
            raise SyntaxError(f"no encoding of source text: {encoding}")
        text = raw.decode(encoding)
    except (SyntaxError, LookupError, UnicodeError):  # The second of codecs such as rot13.
        text = raw.decode("latin-1")  # Python 2 took any bytes in comments and strings.
    if "\0" in text:
        raise UserError(f"script {path} is not text; name a Python file or a notebook")
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _cells(path: str, raw: bytes) -> list[Source]:
    try:
        notebook = json.loads(raw.decode("utf-8"))
        cells = notebook.get("cells") or notebook["worksheets"][0]["cells"]
        texts = [
            "".join(cell.get("source", cell.get("input", [])))
            for cell in cells
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"notebook {path} is not one ({error!r}); name an .ipynb file") from None
    sources = []
    for number, text in enumerate(texts, 1):
        # Magics and shell commands are the notebook's own; commented out, lines keep their numbers.
        plain = re.sub(r"(?m)^([^\S\n]*)([%!])", r"\1pass  # \2", text)
        filename = f"{path} [cell {number}]"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        sources.append(from_text(plain, filename))
    return sources


@functools.lru_cache(maxsize=16)  # It is asked for more than once, and takes its time.
def _to_python3(text: str, filename: str) -> str:
    """Converts Python 2 by fissix, the maintained lib2to3."""
    try:
        from fissix import refactor
    except ImportError:
        raise UserError(
            f"script {filename} is written in Python 2, and the package fissix, which converts it, "
            "is not installed; pip install 'compat-experiments[scripts]'"
        ) from None
    # Python 2 counts a tab as up to the next multiple of eight columns, wherever others see one.
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" \t")
        lines.append(line[: len(line) - len(body)].expandtabs(8) + body)
    try:
        tool = _refactoring(refactor)
        converted = tool.refactor_string("\n".join(lines).rstrip("\n") + "\n", filename)
    except RecursionError:
        raise
    except Exception as error:
        where = getattr(error, "context", (None, (None, None)))[1][0]
        message = f"neither Python 3 nor Python 2: {error}"
        raise SyntaxError(message, (filename, where, None, None)) from None
    return str(converted)


@functools.lru_cache(maxsize=None)
def _refactoring(refactor: Any) -> Any:
    fixers = [
        name
        for name in refactor.get_fixers_from_package("fissix.fixes")
        if name.rpartition(".")[2] not in ("fix_imports2", "fix_asserts", "fix_paren")
    ]
    return refactor.RefactoringTool(fixers)
