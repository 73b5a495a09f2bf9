"""The name by which a program knows TensorFlow."""

from __future__ import annotations

import ast

from compat.errors import UserError
from compat.scripts.migrating.program import Program


def tensorflow(program: Program) -> str:
    """Returns the name under which a program imports `compat.v1`, or raises `UserError`."""
    for node in program.nodes(ast.Import):
        for alias in node.names:
            if alias.name == "compat.v1" and alias.asname:
                return str(alias.asname)
    raise UserError(
        f"{program.source.filename} does not import TensorFlow under a name; "
        "write `import tensorflow as tf`"
    )
