"""Reads scripts and notebooks as Python 3 code, without changing their files."""

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
from typing import Any, Container, Iterator

from compat.errors import UserError, unless_usable
from compat.scripts.reading import arrays, frames, lists, literals, scopes
from compat.scripts.reading.python2 import ClassicDivision, ClassicStrings

# Names that parse as Python 3 but exist in Python 2 only.
_OLD_METHODS = {"has_key", "iteritems", "iterkeys", "itervalues", "viewitems", "viewkeys"}
_OLD_NAMES = {"basestring", "execfile", "raw_input", "reduce", "unichr", "unicode", "xrange"}
_OLD_MODULES = (
    "ConfigParser Queue SocketServer StringIO cPickle commands cookielib httplib urllib2 urlparse"
)
_OLD_ATTRIBUTES = (
    "itertools.imap itertools.izip os.getcwdu string.join string.letters string.maketrans "
    "sys.maxint sys.setdefaultencoding urllib.quote urllib.urlencode urllib.urlopen "
    "urllib.urlretrieve"
)
# These lines are found in the old text, because fissix removes them.
_FUTURE = r"(?m)^from[ \t]+__future__[ \t]+import[ \t]+(\([^()]*|[^\n]*)\b%s\b"
_TRUE_DIVISION, _ABSOLUTE_IMPORTS = (
    re.compile(_FUTURE % n) for n in ("division", "absolute_import")
)
_VERSIONS = {"PY2", "PY3", "version", "version_info"}
_KEPT = 64  # Files of which the text and the tree are kept: a script, and modules of its own.
_DEPTH = 5000  # Nested calls, enough for a sum of a thousand terms.
_ASCII = bytes(range(32, 127))
_LEFT_OUT = ("fix_imports2", "fix_asserts", "fix_paren")
# This fixer writes `from . import x` for a sibling x, which fails in a script.
_RELATIVE = "fix_import"
_SORTS = ("cmp", "key", "reverse")


@dataclass(frozen=True)
class Source:
    """A part of a program, in Python 2 or 3."""

    filename: str  # As tracebacks show it.
    text: str
    python2: bool
    cell: int = 0  # The number of a notebook's code cell, from one.

    def python3(self, relative: bool = False) -> str:
        """Returns the text, converted to Python 3 if it is Python 2.

        Args:
          relative: whether to import modules in the same folder by relative imports, which is
            needed unless `compat.scripts.view.imports` serves the imports.

        Raises:
          SyntaxError: the text is neither Python 3 nor Python 2.
        """
        if not self.python2:
            return self.text
        return converted(self.text, self.filename, relative)

    @property
    def has_absolute_imports(self) -> bool:
        """Whether imports are absolute, due to `from __future__ import absolute_import`."""
        return bool(_ABSOLUTE_IMPORTS.search(self.text))

    @property
    def divides_integers(self) -> bool:
        """Whether `/` between integers gives an integer."""
        return self.python2 and not _TRUE_DIVISION.search(self.text)

    @property
    def is_readable(self) -> bool:
        """Whether the text can be parsed; if not, Python reports the error when it runs it."""
        try:
            self.tree()
        except (SyntaxError, UserError):
            return False
        return True

    def tree(self) -> ast.Module:
        """Returns the Python 3 syntax tree; all callers share it, so none may change it.

        Raises:
          SyntaxError: the text is neither Python 3 nor Python 2.
          UserError: its expressions are nested too deeply.
        """
        with deep(self.filename):
            return parse(self.python3(), self.filename)

    def code(self) -> types.CodeType:
        """Returns compiled code, with old operations as calls of builtins; raises like `tree`."""
        with warnings.catch_warnings(), deep(self.filename):
            warnings.simplefilter("ignore")  # Invalid escapes, `is` with a literal.
            tree = ast.parse(self.python3(), self.filename)  # Not shared, since it is changed.
            # Each visitor changes the tree in place.
            if self.divides_integers:
                ClassicDivision().visit(tree)
            if self.python2:
                ClassicStrings().visit(tree)
            arrays.ClassicArrays().visit(tree)
            frames.ClassicFrames().visit(tree)
            return compile(
                ast.fix_missing_locations(tree), self.filename, "exec", dont_inherit=True
            )


@contextlib.contextmanager
def deep(filename: str) -> Iterator[None]:
    """Raises the recursion limit for nested expressions, and a UserError if they are deeper."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEPTH))
    try:
        yield
    except (MemoryError, RecursionError):  # Python's parser raises either.
        raise UserError(
            f"{filename} has expressions that are nested too deeply to be read; take them apart"
        ) from None
    except UserError:  # It is a ValueError as well.
        raise
    except ValueError as error:
        raise UserError(f"{filename} is not text ({error}); save it as UTF-8") from None
    finally:
        sys.setrecursionlimit(limit)


def read(path: str) -> list[Source]:
    """Returns the parts of a script: one, or one per code cell of a notebook."""
    with unless_usable(f"script {path} cannot be read", "name a Python file or a notebook"):
        raw = Path(path).read_bytes()
    if path.endswith(".ipynb"):
        return _cells(path, raw)
    return [from_text(_decode(path, raw), path)]


def readable(path: str) -> list[Source]:
    """Returns the parts of a script, as `read` does; [] if one cannot be read or parsed."""
    try:
        sources = read(path)
    except UserError:
        return []
    return sources if all(source.is_readable for source in sources) else []


@functools.lru_cache(maxsize=_KEPT)
def from_text(text: str, filename: str, cell: int = 0) -> Source:
    """Returns the source of a text, marked as Python 2 or 3."""
    return Source(filename, text, is_python2(text, filename), cell)


def is_python2(text: str, filename: str = "") -> bool:
    """Whether a program is written in Python 2, by its syntax or else by the names that it uses."""
    try:
        with deep(filename):
            tree = parse(text, filename)
    except SyntaxError:
        return True
    except UserError:
        return False  # Reported when it is read.
    nodes = list(ast.walk(tree))
    aliases = [
        alias
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    ]
    own = {name for node in nodes for name in scopes.binds(node)}
    has_pandas = any(alias.name == "pandas" for alias in aliases)
    # A DataFrame has this method in Python 3 as well.
    methods = _OLD_METHODS - {"iteritems"} if has_pandas else _OLD_METHODS
    return (
        any(_calls_method(node, methods) for node in nodes)
        or any(isinstance(node, ast.Name) and node.id in _OLD_NAMES - own for node in nodes)
        or lists.are_expected(tree, own)
        or not _imported(tree).isdisjoint([*_OLD_MODULES.split(), *_OLD_ATTRIBUTES.split()])
    )


def _calls_method(node: ast.AST, methods: Container[str]) -> bool:
    """Whether a node calls one of the methods, other than a function of `six`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr in methods and getattr(node.func.value, "id", "") != "six"


def _imported(tree: ast.Module) -> set[str]:
    """Returns the modules and names that a program imports, and the attributes that it uses.

    Imports in a `try` are left out, since a program for both Pythons has those.
    """
    names = {a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names.update([node.module or "", *(f"{node.module}.{a.name}" for a in node.names)])
    names.update(map(literals.dotted, _attributes(tree)))
    return names


def _attributes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the attributes in a program, except those that depend on the version of Python."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        is_version = isinstance(node, ast.If) and literals.identifiers(node.test) & _VERSIONS
        if is_version or isinstance(node, ast.Try):
            continue
        if isinstance(node, ast.Attribute):
            yield node
        rest.extend(ast.iter_child_nodes(node))


@functools.lru_cache(maxsize=_KEPT)
def parse(text: str, filename: str) -> ast.Module:
    """Returns the syntax tree of Python 3 code, without warnings; all callers share it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename)


def _decode(path: str, raw: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        if _ASCII.decode(encoding) != _ASCII.decode():
            raise SyntaxError(f"no encoding of source text: {encoding}")
        text = raw.decode(encoding)
    except (SyntaxError, LookupError, UnicodeError):  # LookupError: codecs such as rot13.
        text = raw.decode("latin-1")  # Python 2 accepted any bytes in comments and strings.
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
        raise UserError(f"notebook {path} is not valid ({error!r}); name an .ipynb file") from None
    sources = []
    for number, text in enumerate(texts, 1):
        # Magics and shell commands are not Python; commenting them out keeps the line numbers.
        plain = re.sub(r"(?m)^([^\S\n]*)([%!])", r"\1pass  # \2", text)
        filename = f"{path} [cell {number}]"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        sources.append(from_text(plain, filename, number))
    return sources


@functools.lru_cache(maxsize=_KEPT)
def converted(text: str, filename: str, relative: bool = False) -> str:
    """Returns Python 2 source as Python 3.

    Args:
      text: the source.
      filename: its file, for errors.
      relative: whether to import the modules beside it by relative imports.

    Raises:
      SyntaxError: the source is neither Python 3 nor Python 2.
    """
    try:
        from fissix import refactor
    except ImportError:
        raise UserError(
            f"script {filename} is written in Python 2, and the package fissix, which converts it, "
            "is not installed; pip install 'compat-experiments[scripts]'"
        ) from None
    # In Python 2 a tab advances to the next multiple of eight columns.
    spaced = re.sub(r"(?m)^[ \t]+", lambda indent: indent[0].expandtabs(8), text)
    try:
        done = _refactoring(refactor, relative).refactor_string(
            spaced.rstrip("\n") + "\n", filename
        )
    except RecursionError:
        raise
    except Exception as error:
        where = getattr(error, "context", (None, (None, None)))[1][0]
        message = f"neither Python 3 nor Python 2: {error}"
        raise SyntaxError(message, (filename, where, None, None)) from None
    return str(done)


@functools.lru_cache(maxsize=None)
def _refactoring(refactor: Any, relative: bool) -> Any:
    names = refactor.get_fixers_from_package("fissix.fixes")
    left_out = _LEFT_OUT if relative else (*_LEFT_OUT, _RELATIVE)
    kept = [name for name in names if name.rpartition(".")[2] not in left_out]
    tool = refactor.RefactoringTool(kept)
    for fixer in (*tool.pre_order, *tool.post_order):
        if type(fixer).__name__ == "FixSorted":
            fixer.transform = functools.partial(_sorted, fixer.transform)
    return tool


def _sorted(transform: Any, node: Any, found: Any) -> Any:
    """Converts a call of a list's `sort` with a comparison function.

    Returns None, which leaves the call as it is, if it is a `sort` of an array or a DataFrame.
    """
    arguments = found.get("func_arg") or found.get("func_args") or []
    first = str(arguments[0]).strip() if arguments else ""
    keywords = [str(a.children[0]).strip() for a in arguments if "=" in map(str, a.children)]
    if first[:1] in "[{\"'0123456789-" and first or set(keywords) - set(_SORTS):
        return None
    return transform(node, found)
