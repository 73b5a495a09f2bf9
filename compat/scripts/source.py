"""The text of a script or notebook as Python 3 code, without touching its file."""

from __future__ import annotations

import ast
import copy
import io
import json
import linecache
import re
import tokenize
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat.errors import UserError

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
_TRUE_DIVISION = re.compile(r"(?m)^from\s+__future__\s+import\s+(\([^)]*|[^\n]*)\bdivision\b")
DIVISION = "__classic_division__"
DECODE = "__classic_decode__"
TOSTRING = "__classic_tostring__"
TRUTH = "__classic_truth__"


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
        """
        if not self.python2:
            return _classic_truth(_parse(self.text, self.filename))
        tree = _parse(_to_python3(self.text, self.filename), self.filename)
        if not _TRUE_DIVISION.search(self.text):
            tree = _ClassicDivision().visit(tree)
        return _classic_truth(_ClassicStrings().visit(tree))

    def code(self) -> types.CodeType:
        """Returns the compiled code.

        Raises:
          SyntaxError: it is neither Python 3 nor Python 2.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Invalid escapes, `is` with a literal.
            return compile(self.tree(), self.filename, "exec", dont_inherit=True)


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
        tree = _parse(text, "")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return True
    defined = {
        target.id
        for node in ast.walk(tree)
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
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
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
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
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise UserError(f"notebook {path} is not one ({error!r}); name an .ipynb file") from None
    sources = []
    for number, text in enumerate(texts, 1):
        # Magics and shell commands are the notebook's own; commented out, lines keep their numbers.
        plain = re.sub(r"(?m)^(\s*)([%!])", r"\1pass  # \2", text)
        filename = f"{path} [cell {number}]"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        sources.append(from_text(plain, filename))
    return sources


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
    fixers = [
        name
        for name in refactor.get_fixers_from_package("fissix.fixes")
        if name.rpartition(".")[2] not in ("fix_imports2", "fix_asserts", "fix_paren")
    ]
    tool = refactor.RefactoringTool(fixers)
    try:
        converted = tool.refactor_string("\n".join(lines).rstrip("\n") + "\n", filename)
    except Exception as error:
        where = getattr(error, "context", (None, (None, None)))[1][0]
        message = f"neither Python 3 nor Python 2: {error}"
        raise SyntaxError(message, (filename, where, None, None)) from None
    return str(converted)


class _ClassicDivision(ast.NodeTransformer):
    """Has `/` do what it did in Python 2: whole numbers give a whole number."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.copy_location(_divide(node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        value = copy.copy(node.target)
        value.ctx = ast.Load()
        return ast.copy_location(ast.Assign([node.target], _divide(value, node.value)), node)


class _ClassicStrings(ast.NodeTransformer):
    """Has `text.decode(...)` do what it does for bytes: text was bytes, and is text already."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "decode":
            return node
        decode = ast.Name(DECODE, ast.Load())
        return ast.copy_location(
            ast.Call(decode, [node.func.value, *node.args], node.keywords), node
        )


class _ClassicTruth(ast.NodeTransformer):
    """Has `while array:` take an empty array for false, as it was; NumPy 2.2 raises an error."""

    def visit_If(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = self._test(node.test)
        return node

    visit_While = visit_IfExp = visit_Assert = visit_If

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = self._test(node.operand)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "tostring":
            # Of arrays; NumPy 2.3 has `tobytes` only.
            tostring = ast.Name(TOSTRING, ast.Load())
            node.func = ast.copy_location(ast.Call(tostring, [node.func.value], []), node.func)
        return node

    def _test(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            node.values = [self._test(value) for value in node.values]
        elif isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
            return ast.copy_location(ast.Call(ast.Name(TRUTH, ast.Load()), [node], []), node)
        return node


def _classic_truth(tree: ast.Module) -> ast.Module:
    return ast.fix_missing_locations(_ClassicTruth().visit(tree))


def _divide(left: ast.expr, right: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(DIVISION, ast.Load()), [left, right], [])
