"""Provides `Program`: a script with its syntax trees and names, and the edits that rewrite it."""

from __future__ import annotations

import ast
import functools
import re
import tokenize
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from compat.errors import UserError
from compat.scripts.names import table
from compat.scripts.reading import conversion, literals
from compat.scripts.reading.uses import Use, Walk

# Tokens between the lines of a program.
_BETWEEN = {tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}
_BLANK = {tokenize.NL, tokenize.COMMENT}
# Shims of names that TensorFlow 0.x and 1.x both have, with different arguments.
_BOTH = ("compat.scripts.shims.arguments:", "compat.scripts.shims.classes:")
# Expressions that need parentheses inside some other expressions.
LOOSE = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.Tuple, ast.UnaryOp)


class Edit(NamedTuple):
    """Replaces the characters from `start` to `end`; inserts where they are the same."""

    start: int
    end: int
    text: str


class Remark(NamedTuple):
    """A task that is left to the user, for the line of a node."""

    node: ast.AST
    text: str


class GiveUpError(Exception):
    """Raised by a rule at a use that it cannot rewrite; then the rule leaves all uses in a file."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.node = node


class UnmarkedError(GiveUpError):
    """Raised for a node whose place in the text is not known."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(node, "its place is not known, as inside of an f-string")


class Program:
    """A script, or the code cells of a notebook, as Python 3, which Python 2 is converted to.

    Attributes:
      sources: its parts, of which a script has one.
      trees: the syntax tree of each part.
      text: the text of a script, which edits refer to.
      parents: the parent of each node.
      modules: the modules that it imports, its own and others.
      uses: the uses of names of TensorFlow and of other packages, in the order of execution.
      of_tensorflow: those of TensorFlow.
      is_0x: whether it uses a name that TensorFlow 1.0 removed.

    Raises:
      SyntaxError: a part is neither Python 3 nor Python 2.
      UserError: a part cannot be read for another reason, such as too many nested expressions.
    """

    def __init__(self, sources: Sequence[conversion.Source], relative: bool = False) -> None:
        self.sources = sources
        self.path = sources[0].filename if sources else ""
        texts = [source.python3(relative) for source in sources]
        self.text = texts[0] if sources else ""
        walk = Walk()
        with conversion.deep(self.path):
            self.trees = [conversion.parse(t, s.filename) for t, s in zip(texts, sources)]
            for tree in self.trees:
                walk.part(tree)
            self.uses = walk.finish()
        self.modules, self._meanings = walk.modules, walk.meanings
        self._source_of = dict(zip(self.trees, sources))
        self._nodes = [node for tree in self.trees for node in ast.walk(tree)]
        self.parents = {n: node for node in self._nodes for n in ast.iter_child_nodes(node)}
        self.of_tensorflow = [use for use in self.uses if use.is_tensorflow]
        self._marks: Any = None
        self.is_0x = any(_is_of_0x(use) for use in self.of_tensorflow)

    def nodes(self, *kinds: type) -> list[Any]:
        """Returns the nodes of these classes, or all."""
        return [n for n in self._nodes if isinstance(n, kinds)] if kinds else [*self._nodes]

    def meaning(self, node: ast.AST) -> str:
        """Returns the full name, such as "tensorflow.train", of an imported name or attribute.

        Returns "" if the node stands for nothing imported.
        """
        return self._meanings.get(node, "")

    def source(self, node: Any) -> conversion.Source:
        """Returns the part that a node is in."""
        while node in self.parents:
            node = self.parents[node]
        return self._source_of[node]

    @property
    def python2(self) -> bool:
        """Whether a part is written in Python 2."""
        return any(source.python2 for source in self.sources)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Returns start and end of a node, without parentheses around it."""
        start, end = self._marked().get_text_range(node)
        if end == 0:
            raise UnmarkedError(node)
        while self.text[start] in " \t":  # The first statement of a block begins with its indent.
            start += 1
        return start, end

    def argument(self, call: ast.Call, node: ast.AST) -> tuple[int, int]:
        """Returns start and end of an argument of a call, with parentheses around it."""
        self.span(node)
        function: Any = call.func
        first, last = node.first_token, node.last_token  # type: ignore[attr-defined]
        opening = self._next(function.last_token)
        while opening.string == ")":  # Closes parentheses around the function.
            opening = self._next(opening)
        while True:
            before, after = self._next(first, -1), self._next(last)
            if before.string != "(" or before.index == opening.index:
                return first.startpos, last.endpos
            first, last = before, after

    def expression(self, node: ast.AST) -> str:
        """Returns the text of an expression, with the parentheses directly around it."""
        start, end = self.span(node)
        before = self._next(node.first_token, -1)  # type: ignore[attr-defined]
        after = self._next(node.last_token)  # type: ignore[attr-defined]
        if before.string == "(" and after.string == ")" and isinstance(node, LOOSE):
            start, end = before.startpos, after.endpos
        return self.text[start:end]

    def between(self, left: ast.AST, right: ast.AST) -> tuple[int, int]:
        """Returns start and end of the operator, with the blanks around it, between two nodes."""
        self.span(left), self.span(right)
        token: Any = self._next(left.last_token)  # type: ignore[attr-defined]
        while token.string == ")":
            token = self._next(token)
        start, end = token.startpos, token.endpos
        while self.text[start - 1] in " \t":
            start -= 1
        while self.text[end] in " \t":
            end += 1
        return start, end

    def line_start(self, node: ast.AST) -> int:
        """Returns the start of the text of the logical line that a node is in."""
        try:
            offset, _ = self.span(node)
        except UnmarkedError:  # Take the statement around the node.
            while not isinstance(node, ast.stmt):
                node = self.parents[node]
            offset, _ = self.span(node)
        starts = _line_starts(self._marked().tokens)
        return max((start for start in starts if start <= offset), default=0)

    def import_from_v1(self, node: ast.Import | ast.ImportFrom, module: str) -> Edit:
        """Returns the edit by which a statement imports a module from `compat.v1.packages`."""
        start, end = self.span(node)
        word = r"from\s+" if isinstance(node, ast.ImportFrom) else r"(?:import\b|,)[\s\\]*"
        found = re.search(rf"{word}({re.escape(module)})\b(\s+as\b)?", self.text[start:end])
        if found is None:
            raise UnmarkedError(node)
        new = "compat.v1.packages." + module
        if isinstance(node, ast.Import) and not found[2]:
            # The package finds its modules on access.
            top = module.partition(".")[0]
            new = f"compat.v1.packages.{top} as {top}"
        return Edit(start + found.start(1), start + found.end(1), new)

    def head(self) -> int:
        """Returns the position at which imports can be added: before the first import."""
        rest = [node for node in self.trees[0].body if not _is_preamble(node)]
        imports = [node for node in rest if _imports(node)]
        return self.line_start((imports or rest)[0])

    def edited(self, edits: Iterable[Edit]) -> str:
        """Returns the text after edits, which do not overlap."""
        position, pieces = 0, []
        for edit in sorted(edits, key=lambda edit: edit[:2]):
            assert edit.start >= position, edit
            pieces += [self.text[position : edit.start], edit.text]
            position = edit.end
        return "".join([*pieces, self.text[position:]])

    def _marked(self) -> Any:
        """Returns the tokens of the text and of each node; finds them once an edit needs them."""
        if self._marks is None:
            self._marks = self._mark()
        return self._marks

    def _mark(self) -> Any:
        try:
            import asttokens
        except ImportError:
            raise UserError(
                f"script {self.path} cannot be rewritten, since the package asttokens, which finds "
                "its words, is not installed; pip install 'compat-experiments[scripts]'"
            ) from None
        try:
            return asttokens.ASTTokens(self.text, tree=self.trees[0], filename=self.path)
        except (IndexError, SyntaxError, tokenize.TokenError) as error:
            raise UserError(
                f"script {self.path} cannot be taken apart into words ({error}); write it plainly"
            ) from None

    def _next(self, token: Any, step: int = 1) -> Any:
        """Returns the next token, or with a `step` of -1 the one before; skips comments."""
        tokens = self._marked().tokens
        token = tokens[token.index + step]
        return self._next(token, step) if token.type in _BLANK else token


@functools.lru_cache(maxsize=16)
def of(*sources: conversion.Source, relative: bool = False) -> Program:
    """Returns the program of some sources, from a cache; raises the errors of `Program`.

    Args:
      sources: a script, or the cells of a notebook.
      relative: whether Python 2 is converted with relative imports of the modules beside it.
    """
    return Program(sources, relative)


def read(path: str) -> Program:
    """Returns the program in a file; raises the errors of `conversion.read` and `Program`."""
    return of(*conversion.read(path))


def era(sources: Iterable[conversion.Source]) -> str:
    """Returns "0.x" if a program uses a name that TensorFlow 1.0 removed, else "1.x"."""
    try:
        return "0.x" if of(*(s for s in sources if s.is_readable)).is_0x else "1.x"
    except UserError:
        return "1.x"  # Python reports the error when it runs the program.


def _is_of_0x(use: Use) -> bool:
    entry = table.NAMES.get(table.plain(use.name))
    return entry is not None and entry.gone == "1.0" and not entry.by.startswith(_BOTH)


def _line_starts(tokens: Iterable[Any]) -> Iterator[int]:
    is_between = True
    for token in tokens:
        if token.type in _BETWEEN:
            # Only this token ends a logical line; NL ends a line in parentheses or a comment.
            is_between = is_between or token.type == tokenize.NEWLINE
        elif is_between:
            yield token.startpos
            is_between = False


def _is_preamble(node: ast.stmt) -> bool:
    """Whether a statement has to stay at the top: a docstring, an import from the future."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and bool(literals.text(node.value))


def _imports(node: ast.stmt) -> bool:
    if isinstance(node, (ast.If, ast.Try)):
        return any(map(_imports, node.body))
    return isinstance(node, (ast.Import, ast.ImportFrom))
