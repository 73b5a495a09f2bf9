"""A rule for imports of TensorFlow, which become imports of `compat.v1`.

TensorFlow 2.0 has other functions under many names of 1.x, and no `tf.contrib`; `compat.v1` has all
that an old script sees under `compat run`.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator

from compat.scripts.names import table
from compat.scripts.reading import literals
from compat.scripts.reading.program import Edit, GiveUpError, Program
from compat.scripts.rules import calls, names
from compat.scripts.rules.rule import FAILS, Rule

_V1 = "compat.v1"
_TODAY = "tensorflow.compat"
# `compat.v1` replaces `tensorflow` and `tensorflow.compat.v1`.
_TOP = re.compile(r"\btensorflow\b(\s*\.\s*compat\s*\.\s*v1\b)?")
# Some of the names that TensorFlow 2 has in `tf.compat.v1` alone.
_ONLY_V1 = re.compile(
    r"(app|contrib|flags|layers|logging|placeholder|(Interactive)?Session|get_variable|"
    r"global_variables_initializer|set_random_seed|variable_scope|"
    r"train\.(\w+Optimizer|Saver|Server|Supervisor|Monitored\w+|\w*global_step))\b"
)
_MODULE = re.compile(r"(?<![\w.])tensorflow\b((?:\s*\.\s*\w+)*)(\s+as\s+\w+)?")


def _rewrite_tensorflow(program: Program) -> Iterator[Edit]:
    is_today = not needs_v1(program)
    left = {
        id(use.node)
        for use in program.of_tensorflow
        if use.imported and not use.guarded and names.is_unserved(use)
    }
    for node in program.nodes(ast.Import, ast.ImportFrom):
        if len(node.names) == 1 and {id(node), id(node.names[0])} & left:
            continue  # Nothing serves the import: it stays, with a remark of another rule.
        yield from _statement(program, node, is_today)
    for call in program.nodes(ast.Call):
        function = literals.dotted(call.func)
        if function.rpartition(".")[2] not in ("__import__", "import_module") or not call.args:
            continue
        module = literals.text(call.args[0])
        if not _is_old(module, is_today):
            continue
        if function == "__import__":
            raise GiveUpError(call, "__import__ returns the package `compat`; use import_module")
        start, end = program.span(call.args[0])
        yield Edit(start, end, _TOP.sub(_V1, program.text[start:end], 1))


def needs_v1(program: Program) -> bool:
    """Whether a program needs `compat.v1`: today's `tf` or `tf.compat.v1` lacks what it uses."""
    for use in program.of_tensorflow:
        if _ONLY_V1.match(use.name):
            return True
        if use.name != table.plain(use.name):
            found = [names.finding(use), *calls.findings(use, program.is_0x)]
            if any(finding is not None and finding.kind is not FAILS for finding in found):
                return True
    return False


def _is_old(module: str, is_today: bool) -> bool:
    inside = (module + ".").startswith("tensorflow.")
    return inside and not (is_today and (module + ".").startswith(_TODAY + "."))


def _statement(program: Program, node: Any, is_today: bool) -> Iterator[Edit]:
    start, end = program.span(node)
    text = program.text[start:end]
    if isinstance(node, ast.ImportFrom):
        top = _TOP.search(text)
        if top is not None and not node.level and _is_old(node.module or "", is_today):
            yield Edit(start + top.start(), start + top.end(), _V1)
        return
    for found in _MODULE.finditer(text):
        below, alias = re.sub(r"\s", "", found[1]), found[2]
        if _is_old("tensorflow" + below, is_today):
            # `import tensorflow.contrib` binds the package, which finds its modules on access.
            new = f"{_V1}{below}{alias}" if alias else f"{_V1} as tensorflow"
            new = new.replace(_V1 + ".compat.v1", _V1, 1)
            yield Edit(start + found.start(), start + found.end(), new)


RULES = (
    Rule(
        "imports",
        "2.0",
        "modules of TensorFlow come from compat.v1",
        "from tensorflow.examples.tutorials.mnist import input_data",
        "from compat.v1.examples.tutorials.mnist import input_data",
        find=names.finder("imports"),
        rewrite=_rewrite_tensorflow,
    ),
)
