"""The imports of a new program."""

from __future__ import annotations

import ast
import re
from typing import Any, Sequence

from compat.scripts.migrating.steps.graph import Graph
from compat.scripts.migrating.steps.pieces import Pieces
from compat.scripts.source import literals, scopes


def head(
    graph: Graph, pieces: Pieces, inner: Sequence[ast.stmt], text: str, has_settings: bool
) -> str:
    """Returns the docstring and the imports that a new program needs.

    Args:
      graph: of the old program.
      pieces: of it; what is taken, or no longer needed, is noted there.
      inner: the imports that are in the methods.
      text: of the new program, without these.
      has_settings: whether it has settings of its own.
    """
    program, tree = graph.program, graph.program.tree
    opening = re.match(r"(#[^\n]*\n)*", program.text)
    start = opening.end() if opening is not None else 0
    if isinstance(tree.body[0], ast.Expr) and literals.text(tree.body[0].value):
        start = pieces.lines(tree.body[0])[1]
    pieces.moved.append((0, start))
    head = program.text[:start].rstrip("\n")
    words = set(re.findall(r"\w+", text))
    future, imports = ["from __future__ import annotations\n"], []
    for node in program.nodes(ast.Import, ast.ImportFrom, ast.Try):
        names = scopes.bound([node])
        is_import = not isinstance(node, ast.Try) or all(map(_is_import, node.body))
        if node not in tree.body or not is_import:
            continue
        if getattr(node, "module", "") == "__future__" or node in inner:
            pieces.moved.append(pieces.lines(node))
        elif names & {*words, "era_0x"}:  # That is imported for what it does.
            imports.append(pieces.take([node], [], ""))
    known = "".join(imports)
    classes = ["from dataclasses import dataclass\n"] if has_settings else []
    ours: list[str] = []
    if re.search(r"\bnp\.", text) and not re.search(r"\bas np\b", known):
        ours.append("import numpy as np\n")
    taken = "Experiment, run, setting" if " setting(" in text else "Experiment, run"
    ours.append(f"from experiments import {taken}\n")
    if re.search(r"\bcompat\.get_or_create", text):
        ours.insert(len(ours) - 1, "import compat\n")
    tf = graph.tf
    known = known if re.search(rf"\bas {tf}\b", known) else f"import compat.v1 as {tf}\n{known}"
    return "".join([head, "\n" * bool(head), *future, "\n", *classes, known, *ours]).rstrip() + "\n"


def loads(node: Any) -> bool:
    """Whether an import is of a module below `compat.v1`, but of no package beside it."""
    names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
    return any(n.startswith("compat.v1.") and ".packages" not in n for n in names)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))
