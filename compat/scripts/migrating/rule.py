"""What a rule of `python -m compat migrate` is."""

from __future__ import annotations

import ast
from typing import Callable, Iterator, NamedTuple

from compat.scripts.migrating.program import Edit, Program


class Remark(NamedTuple):
    """What has to be done by hand, for the line of a node."""

    node: ast.AST
    text: str


class GiveUpError(Exception):
    """Raised by a rule at a use that it cannot rewrite; it then leaves all uses in the file."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.node = node


class Rule(NamedTuple):
    """Rewrites the uses of one kind."""

    id: str
    gone: str  # What no longer takes the uses: a release of TensorFlow, or Python 3, NumPy.
    says: str
    before: str  # An example, of a script that has imported TensorFlow as `tf`.
    after: str
    find: Callable[[Program], Iterator[Edit | Remark]]
    optional: bool = False  # Whether a use also works as it is.
