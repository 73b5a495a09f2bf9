"""Placeholders that a function of the program makes and returns, written where it is called."""

from __future__ import annotations

import ast
import re
from typing import Any

from compat.scripts.migrating.program import Edit, Program
from compat.scripts.migrating.steps import scopes
from compat.scripts.migrating.steps.kinds import Kinds


def inlined(program: Program, kinds: Kinds) -> list[Edit]:
    """Returns the edits that put the body of `def inputs(size): ...; return x, y` in its place.

    The function has placeholders alone, and is called once, in an assignment to names.
    """
    edits: list[Edit] = []
    for function in program.nodes(ast.FunctionDef):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        made = _made(body, kinds)
        calls = [
            node
            for node in program.nodes(ast.Assign)
            if isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == function.name
        ]
        uses = [node for node in program.nodes(ast.Name) if node.id == function.name]
        if made and len(calls) == len(uses) == 1:
            edits += _inline(program, function, body, calls[0])
    return edits


def _made(body: list[Any], kinds: Kinds) -> bool:
    """Whether statements assign placeholders to names, and return these."""
    if len(body) < 2 or not isinstance(body[-1], ast.Return):
        return False
    makes = all(isinstance(s, ast.Assign) and _is_input(s.value, kinds) for s in body[:-1])
    return makes and {*_names(body[-1].value)} == scopes.bound(body[:-1])


def _is_input(node: ast.AST, kinds: Kinds) -> bool:
    return kinds.called(node) in ("placeholder", "sparse_placeholder")


def _names(node: Any) -> list[str]:
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return [element.id if isinstance(element, ast.Name) else "" for element in elements]


def _inline(program: Program, function: Any, body: list[Any], call: ast.Assign) -> list[Edit]:
    parameters = [argument.arg for argument in function.args.args]
    given = dict(zip(parameters, call.value.args))  # type: ignore[attr-defined]
    given.update((k.arg, k.value) for k in call.value.keywords)  # type: ignore[attr-defined]
    targets = _names(call.targets[0])
    returned = _names(body[-1].value)
    if set(given) != set(parameters) or "" in targets or len(targets) != len(returned):
        return []
    text = program.text
    # From the lines of comment above the first statement on.
    is_first = body[0] is function.body[0]
    before = program.colon(function) if is_first else program.span(function.body[0])[1]
    start = text.find("\n", before) + 1
    end = text.rfind("\n", 0, program.span(body[-1])[0]) + 1
    new = {name: text[slice(*program.span(value))] for name, value in given.items()}
    new.update(zip(returned, targets))
    pieces, position = [], start
    for node in sorted(
        (n for s in body[:-1] for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in new),
        key=lambda node: program.span(node),
    ):
        first, last = program.span(node)
        pieces += [text[position:first], new[node.id]]
        position = last
    lines = "".join([*pieces, text[position:end]])
    own = text[: program.span(body[0])[0]].rpartition("\n")[2]
    place, after = program.span(call)
    indent = text[text.rfind("\n", 0, place) + 1 : place]
    inner = re.sub(rf"(?m)^{own}(?=\S)", indent, lines).strip("\n")
    head = text.rfind("\n", 0, program.span(function)[0]) + 1
    tail = text.find("\n", program.span(function)[1]) + 1 or len(text)
    while text[tail : tail + 1] == "\n" and text[head - 2 : head] == "\n\n":
        tail += 1
    return [Edit(head, tail, ""), Edit(place, after, inner.lstrip(" \t"))]
