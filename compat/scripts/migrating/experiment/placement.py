"""Devices in a graph, which an experiment leaves out: it places what it builds by itself."""

from __future__ import annotations

import ast
from typing import Any

from compat.scripts.migrating.steps.kinds import Kinds
from compat.scripts.migrating.steps.pieces import Pieces
from compat.scripts.rules.program import Edit, Program


def left_out(program: Program, tf: str) -> Program:
    """Returns the program without `with tf.device(...):` in the block that builds its graph."""
    kinds, pieces = Kinds(program, tf), Pieces(program)

    def is_placement(node: Any) -> bool:
        items = getattr(node, "items", [])
        return bool(items) and all(kinds.is_block(item.context_expr) for item in items)

    for block in filter(is_placement, program.nodes(ast.With)):
        for node in ast.walk(block):
            if node is block or not isinstance(node, ast.With) or not is_placement(node):
                continue
            start, first = program.span(node)[0], program.span(node.body[0])[0]
            alone = pieces.alone(node)
            edit = Edit(start, first, "")  # Where its body is on its line.
            if alone is not None and node.body[0].lineno > node.lineno:
                indent = program.text[alone[0] : start]
                edit = Edit(*alone, pieces.take(node.body, [], indent))
            return left_out(program.after([edit]), tf)
    return program
