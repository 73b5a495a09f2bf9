"""What --log_device_placement prints: where variables and operations live."""

from __future__ import annotations

from typing import Sequence

import compat
from compat.runtime.device_placement import shortened
from compat.runtime.interface import current_runtime


def table(train: compat.Step) -> str:
    """Returns which variable and which operation of an update lives where, a line each."""
    variables = [("variable", "shape", "device")]
    for name, variable in sorted(current_runtime().variables().items()):
        device = shortened(variable.device) or "(this process)"
        variables.append((name, str(variable.shape.as_list()), device))
    here = "(the worker that computes)" if current_runtime().server else "(this process)"
    operations = [("operation", "kind", "device")]
    operations += [(name, kind, device or here) for name, kind, device in train.operations()]
    return f"{_lines(variables)}\n{_lines(operations)}"


def _lines(rows: Sequence[tuple[str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
