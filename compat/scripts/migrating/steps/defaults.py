"""Blocks that make a graph or a session the default, of a program that has one of each."""

from __future__ import annotations

import ast
from typing import Any

from compat.scripts.migrating.program import Edit, Program
from compat.scripts.migrating.steps.kinds import Kinds, last
from compat.scripts.migrating.steps.pieces import Pieces, used
from compat.scripts.migrating.steps.region import Region


def straight(program: Program, tf: str) -> Program:
    """Returns a program whose graph is not built in a block of its session, if it is in one.

    Such blocks are `with sess.as_default():`, and `with tf.Graph().as_default():` around that or
    around `with tf.Session() as sess:`.
    """
    while True:
        edit = _edit(program, tf)
        if edit is None:
            return program
        program = program.after([edit])


def _edit(program: Program, tf: str) -> Edit | None:
    """Returns the edit that writes the first such block without what makes the default."""
    kinds, sessions = Kinds(program, tf), Region(program, tf).sessions
    blocks = [n for n in program.nodes(ast.With) if kinds.trains(n)]
    graphs = [n for n in blocks if any(_is_graph(kinds, item) for item in n.items)]
    for node in blocks:
        dropped = [item for item in node.items if _name(item.context_expr) in sessions]
        runs = [s for s in node.body if kinds.uses_session(s)]
        is_around = any(kinds.uses_session(item) for item in node.items)
        is_around = is_around or (bool(runs) and kinds.trains(runs[0]))
        if is_around and len(graphs) == 1:
            dropped += [item for item in node.items if _is_graph(kinds, item)]
        names = {getattr(item.optional_vars, "id", "") for item in dropped}
        is_plain = node.body[0].lineno > node.lineno and not names & used(program.tree)
        alone = Pieces(program).alone(node)
        if dropped and is_plain and alone is not None:
            left = [_text(program, item) for item in node.items if item not in dropped]
            start = program.span(node)[0]
            if left:
                return Edit(start, program.colon(node), f"with {', '.join(left)}:")
            indent = program.text[alone[0] : start]
            return Edit(*alone, Pieces(program).take(node.body, [], indent))
    return None


def _is_graph(kinds: Kinds, item: Any) -> bool:
    node = item.context_expr
    is_default = isinstance(node, ast.Call) and last(node) == "as_default"
    return is_default and kinds.is_block(node)


def _name(node: Any) -> str:
    """Returns the session that an expression makes the default, as in `sess.as_default()`."""
    is_default = isinstance(node, ast.Call) and last(node) == "as_default"
    return getattr(node.func.value, "id", "") if is_default else ""


def _text(program: Program, item: Any) -> str:
    text = program.expression(item.context_expr)
    return f"{text} as {program.expression(item.optional_vars)}" if item.optional_vars else text
