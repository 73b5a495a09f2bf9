"""What a rule is: what it is about, how its uses are found, and how they are rewritten."""

from __future__ import annotations

import ast
from typing import Callable, Iterator, Mapping, NamedTuple, Sequence

from compat.scripts.reading.program import Edit, Program, Remark
from compat.scripts.reading.uses import Use
from compat.scripts.rules.findings import Finding


class Part(NamedTuple):
    """A script, or a cell of a notebook, in Python 3."""

    number: int  # From zero.
    tree: ast.Module
    python2: bool  # Whether it was converted.


class Script(NamedTuple):
    """What is known of a script or a notebook before its rules are asked."""

    parts: Sequence[Part]
    uses: Sequence[Use]
    known: Mapping[
        tuple[bool, str], Finding | None
    ]  # Of each name, and whether it is TensorFlow's.
    is_0x: bool


class Found(NamedTuple):
    """A use of what a rule is about, spelled so at a node of a part."""

    part: int
    node: ast.AST
    spelled: str  # "/" is the operator before the node.
    finding: Finding


class Rule(NamedTuple):
    """What is known about uses of one kind."""

    id: str
    gone: str  # What no longer takes the uses: a release of TensorFlow, or Python 3, NumPy.
    says: str
    before: str  # An example, of a script that has imported TensorFlow as `tf`.
    after: str = ""  # Its migrated form; without one, `migrate` leaves it as it is.
    optional: bool = False  # Whether a use also works as it is.
    find: Callable[[Script], Iterator[Found]] = lambda _: iter(())
    rewrite: Callable[[Program], Iterator[Edit | Remark]] = lambda _: iter(())
