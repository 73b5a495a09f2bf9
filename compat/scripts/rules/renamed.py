"""Names that have another name today.

TensorFlow 1.0: "`tf.mul`, `tf.sub` and `tf.neg` are deprecated in favor of `tf.multiply`,
`tf.subtract` and `tf.negative`", and more of the kind, also in 2.0: `compat.scripts.names.table`.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator

from compat.scripts.names import table
from compat.scripts.reading.program import Edit, GiveUpError, Program
from compat.scripts.rules import lookup
from compat.scripts.rules.rule import Rule


def _rewrite(program: Program) -> Iterator[Edit]:
    for use in program.uses:
        finding = None if use.imported or use.call else lookup.find(use.name)
        key = table.nearest(table.plain(use.name))
        if finding is None or finding.rule != RULE.id or key is None:
            continue
        node: Any = use.node
        for _ in range(table.plain(use.name).count(".") - key.count(".")):
            node = node.value
        start, end = program.span(node)
        spelled = program.text[start:end]
        new = table.NAMES[key].by[len("tf.") :]
        if isinstance(node, ast.Name) and spelled == key and "." not in new:  # Imported by `*`.
            yield Edit(start, end, new)
            continue
        root = spelled[: -len(key)]
        if not spelled.endswith("." + key) or not re.fullmatch(r"[\w.]+", root):
            raise GiveUpError(node, f"{spelled} does not say where it is from")
        yield Edit(start, end, root + new)


RULE = Rule(
    "renamed",
    "1.0, 2.0",
    "names that have another name today",
    'tf.train.SummaryWriter("logs", tf.mul(x, y))',
    'tf.summary.FileWriter("logs", tf.multiply(x, y))',
    optional=True,
    find=lookup.finder("renamed"),
    rewrite=_rewrite,
)
