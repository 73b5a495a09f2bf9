"""Recognizes old forms of calls, and rewrites them with the names of their arguments.

TensorFlow still has these functions, so only a call in an old form is a finding. The functions of
`compat.v1` take the arguments of most calls in either order, by their values. So a call can stay as
it is if its text does not show the order.
"""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterator, Mapping, NamedTuple, Union

from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, GiveUpError, Program
from compat.scripts.rules.rule import Kind

LISTS = (ast.List, ast.Tuple, ast.ListComp)
_Ask = Callable[[ast.Call, bool], Union[bool, None]]


def _never(call: ast.Call, is_0x: bool) -> bool:
    del call, is_0x
    return False


class Form(NamedTuple):
    """An old form of a call; `says` follows the name of the function in a message."""

    rule: str
    kind: Kind
    says: str
    # Returns whether the order is old, or None if the text of the call does not show it. The second
    # argument is whether the program uses names of TensorFlow 0.x.
    is_old: _Ask = _never
    is_likely: _Ask = _never  # Whether a call is probably old, if `is_old` returns None.
    names: tuple[str, ...] = ()  # Today's names of the arguments, in the old order.
    keywords: Mapping[str, str] = {}  # Today's names of arguments, or "", by their old names.
    in_v1: str | None = None  # The message for `tf.compat.v1`, if that refuses the old order.
    is_kept: bool = False  # Whether `tf.compat.v1` has the old form.


def rewritten(program: Program, call: ast.Call, form: Form) -> Iterator[Edit]:
    """Yields edits that put today's names before the arguments, in the order of the call."""
    yield from _renamed(program, call, form.keywords)
    if form.names and is_old(program, call, form):
        yield from _named(program, call, form.names)


def _named(program: Program, call: ast.Call, names: tuple[str, ...]) -> Iterator[Edit]:
    for name, arg in zip(names, call.args):
        if isinstance(arg, (ast.Starred, ast.GeneratorExp)):
            raise GiveUpError(call, "unpacks its arguments")
        start, _ = program.argument(call, arg)
        yield Edit(start, start, name + "=")


def _renamed(program: Program, call: ast.Call, names: Mapping[str, str]) -> Iterator[Edit]:
    for keyword in call.keywords:
        new = names.get(keyword.arg or "")
        if keyword.arg and new:
            start, _ = program.argument(call, keyword.value)
            end = len(program.text[:start].rstrip().rstrip("=").rstrip())
            old = end - len(keyword.arg)
            if program.text[old:end] != keyword.arg:
                raise GiveUpError(call, "has a comment between a name and its value")
            yield Edit(old, end, new)


def is_old(program: Program, call: ast.Call, form: Form) -> bool:
    """Whether a call has the old order; raises GiveUpError if its text does not show it."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        raise GiveUpError(call, "unpacks its arguments")
    found = bool(call.args) and form.is_old(call, program.is_0x)
    if found is None:
        raise GiveUpError(call, "has arguments of which only their values tell the order")
    return found


def is_found(form: Form, call: ast.Call, is_0x: bool) -> bool:
    """Whether a call probably has the old form."""
    if any(keyword.arg in form.keywords for keyword in call.keywords):
        return True
    found = bool(positional(call)) and form.is_old(call, is_0x)
    return form.is_likely(call, is_0x) is True if found is None else found


def positional(call: ast.Call) -> list[ast.expr]:
    """Returns the positional arguments; none if the call unpacks a sequence with `*`."""
    return [] if any(isinstance(arg, ast.Starred) for arg in call.args) else call.args


def at_least(count: int) -> Callable[[ast.Call, bool], bool]:
    """Returns a function that tells whether a call has `count` positional arguments or more."""
    return lambda call, _: len(positional(call)) >= count


def is_named(node: ast.AST, pattern: str) -> bool:
    """Whether any name in an expression matches: variables are often named after arguments."""
    return any(re.search(pattern, name, re.IGNORECASE) for name in literals.identifiers(node))


def axis_first(call: ast.Call, _: bool) -> bool:
    """Whether the first argument is probably an axis."""
    first = call.args[0]
    return literals.is_whole(first) or (isinstance(first, ast.Name) and is_named(first, "dim|axis"))
