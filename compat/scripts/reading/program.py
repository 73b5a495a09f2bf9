"""The text of a script with its syntax tree, and the edits that rewrite it."""

from __future__ import annotations

import ast
import re
import tokenize
from typing import Any, Iterable, Iterator, NamedTuple

from compat.errors import UserError
from compat.scripts.reading import conversion, era, literals, modules
from compat.scripts.reading.uses import Use, Walk

# Tokens between the lines of a program.
_BETWEEN = {tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}
_BLANK = {tokenize.NL, tokenize.COMMENT}
# Expressions that need parentheses to stay one, somewhere.
LOOSE = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.Tuple, ast.UnaryOp)


class Edit(NamedTuple):
    """Replaces the characters from `start` to `end`; inserts where they are the same."""

    start: int
    end: int
    text: str


class Remark(NamedTuple):
    """What has to be done by hand, for the line of a node."""

    node: ast.AST
    text: str


class GiveUpError(Exception):
    """Raised by a rule at a use that it cannot rewrite; it then leaves all uses in the file."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.node = node


class UnmarkedError(GiveUpError):
    """A node's place in the text is not known."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(node, "its place is not known, as inside of an f-string")


class Program:
    """A script as Python 3, which Python 2 is converted to first.

    Attributes:
      parents: the parent of each node of its tree.
    """

    def __init__(self, source: conversion.Source, marked: bool = False) -> None:
        self.source = source
        self.text = source.python3(relative=modules.is_in_package(source.filename))
        self.tree = conversion.parse(self.text, source.filename)
        self._nodes = [*ast.walk(self.tree)]
        self.parents = {n: node for node in self._nodes for n in ast.iter_child_nodes(node)}
        found = uses(self.tree)
        self.uses = [use for use in found if use.is_tensorflow]
        self.other_uses = [use for use in found if not use.is_tensorflow]
        self.is_0x = bool(self.uses) and era.of_sources([source]) == "0.x"
        self._line_starts: list[int] = []
        if self.uses or marked:  # Only what is rewritten is taken apart.
            self._marked = _marked(self)
            self._line_starts += _line_starts(self._marked.tokens)

    def nodes(self, *kinds: type) -> list[Any]:
        """Returns the nodes of these classes."""
        return [node for node in self._nodes if isinstance(node, kinds)]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Returns start and end of a node, without parentheses around it."""
        start, end = self._marked.get_text_range(node)
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
        while opening.string == ")":  # Of a function in parentheses.
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
        except UnmarkedError:  # Its statement is marked.
            around = (part for part in self.nodes(ast.stmt) if node in ast.walk(part))
            offset, _ = self.span([*around][-1])
        return max((start for start in self._line_starts if start <= offset), default=0)

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
        """Returns where lines of import can be added: before the first import."""
        rest = [node for node in self.tree.body if not _is_preamble(node)]
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

    def _next(self, token: Any, step: int = 1) -> Any:
        """Returns the token after another, or with a `step` of -1 before it; no comment."""
        tokens = self._marked.tokens
        token = tokens[token.index + step]
        return self._next(token, step) if token.type in _BLANK else token


def uses(tree: ast.Module) -> list[Use]:
    """Returns the uses in a program of names of TensorFlow and of other packages."""
    walk = Walk()
    walk.part(0, tree)
    return walk.finish()


def _marked(program: Program) -> Any:
    name = program.source.filename
    try:
        import asttokens
    except ImportError:
        raise UserError(
            f"script {name} cannot be rewritten, since the package asttokens, which finds its "
            "words, is not installed; pip install 'compat-experiments[scripts]'"
        ) from None
    try:
        return asttokens.ASTTokens(program.text, tree=program.tree, filename=name)
    except (IndexError, SyntaxError, tokenize.TokenError) as error:
        raise UserError(
            f"script {name} cannot be taken apart into words ({error}); write it plainly"
        ) from None


def _line_starts(tokens: Iterable[Any]) -> Iterator[int]:
    is_between = True
    for token in tokens:
        if token.type in _BETWEEN:
            # No other ends a logical line: not within parentheses, nor after a comment.
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
