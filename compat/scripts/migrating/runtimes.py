"""Makes a program on `compat.v1` run on either runtime, which its flag `--runtime` selects."""

from __future__ import annotations

import ast
from typing import Iterator

from compat.errors import UserError
from compat.scripts.migrating import migration
from compat.scripts.reading import conversion, literals, scopes
from compat.scripts.reading import program as reading
from compat.scripts.reading.program import Edit, Program

# After these lines a program builds a graph of TensorFlow 1.x, on either runtime.
_HEAD = """import sys

import compat
import compat.v1

compat.v1.disable_v2_behavior()
# --runtime=legacy, the default, or --runtime=modern.
compat.select_runtime(compat.runtime_from(sys.argv))

"""
_FLAG = "runtime"
_SERVERS = ("compat.v1.distribute.Server", "compat.v1.train.Server")
# The classes of `compat` that replace them watch the other tasks of the cluster, and end when
# those end.
_OURS = {
    name: f"compat.{name.rpartition('.')[2]}"
    for name in (
        "compat.v1.estimator",
        "compat.v1.train.ClusterSpec",
        "compat.v1.train.MonitoredTrainingSession",
        "compat.v1.train.Supervisor",
        "compat.v1.train.replica_device_setter",
        *_SERVERS,
    )
}


def migrate(path: str, migrated: migration.Migrated, is_main: bool = True) -> migration.Migrated:
    """Returns a program on `compat.v1`, or one of its modules, with the classes of `compat`.

    A program (`is_main`) selects its runtime first. Its graph and its calls of sessions stay as
    they are.

    Raises:
      UserError: the program has a flag `--runtime` of its own.
    """
    program = reading.of(conversion.Source(path, migrated.text, False))
    if any(literals.dotted(c.func) == "compat.select_runtime" for c in program.nodes(ast.Call)):
        return migrated._replace(is_changed=False, was_migrated=True)
    if is_main:
        _check_flags(path)
    edits = [*_renamed(program)]
    if is_main:
        edits = [Edit(program.head(), program.head(), _HEAD), *edits]
    elif edits:
        edits = [Edit(program.head(), program.head(), "import sys\n\nimport compat\n"), *edits]
    text = program.edited(edits)
    counts = {**migrated.counts, "runtimes": len(edits)}
    remarks = migration.remarks_in(text)
    return migrated._replace(text=text, counts=counts, remarks=remarks, is_changed=True)


def _renamed(program: Program) -> Iterator[Edit]:
    """Yields edits that replace classes by those of `compat`, and wrap `server.join()`.

    TensorFlow's `join` never returns. That of `compat` returns the run's exit code, so an edit
    passes it to `sys.exit`.
    """
    for node in program.nodes(ast.Attribute):
        name = program.meaning(node)
        if name in _OURS:
            yield Edit(*program.span(node), _OURS[name])

    def is_server(value: ast.expr, _: set[str]) -> bool:
        return isinstance(value, ast.Call) and program.meaning(value.func) in _SERVERS

    servers = scopes.holding(program.nodes(ast.Assign), is_server)
    for statement in program.nodes(ast.Expr):
        call = statement.value
        called = literals.dotted(call.func) if isinstance(call, ast.Call) else ""
        server, _, method = called.rpartition(".")
        # TensorFlow's `join` never returns; that of `compat` returns the exit code after the run.
        if method == "join" and server in servers:
            start, end = program.span(call)
            yield Edit(start, end, f"sys.exit({program.text[start:end]})")


def _check_flags(path: str) -> None:
    """Raises a `UserError` if a script has the flag that chooses the runtime."""
    for call in reading.read(path).nodes(ast.Call):
        if any(literals.text(word).strip("-") == _FLAG for word in call.args):
            raise UserError(f"{path}:{call.lineno}: it has a flag `{_FLAG}` of its own; rename it")
