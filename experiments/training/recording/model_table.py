"""Lists the variables of a model with their shapes, servers and bytes, as a table."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence, Tuple

from compat.runtime.graphs.device_placement import shortened
from compat.runtime.graphs.homes import task_device

Row = Tuple[str, ...]


def model_table(
    variables: Mapping[str, Any], server_of: Callable[[Any], str] = task_device
) -> list[Row]:
    """Returns a row for each trainable variable, one for all others together, and the sum.

    Args:
      variables: variables by name, as `Runtime.variables` returns them.
      server_of: returns the device that an operation has, or would have.

    Returns:
      Rows of name, shape, server and bytes; the first is a header. A variable of unknown shape
      counts as 0 bytes.
    """
    # In the order of their creation, in which a device setter deals them out to servers.
    servers = {name: shortened(server_of(each.op)) for name, each in variables.items()}
    trained = {name: each for name, each in sorted(variables.items()) if each.trainable}
    others = [each for name, each in variables.items() if name not in trained]
    rows: list[Row] = [("variable", "shape", "server", "bytes")]
    for name, variable in trained.items():
        server = servers[name] or "this process"
        rows.append((name, _shape(variable), server, f"{bytes_of(variable):,}"))
    more, numbers = sum(map(bytes_of, others)), sum(map(_numbers, trained.values()))
    rows.append((f"{len(others)} others, such as of the optimizer", "", "", f"{more:,}"))
    total = more + sum(map(bytes_of, trained.values()))
    rows.append(("sum", f"{numbers:,} numbers are trained", "", f"{total:,}"))
    return rows


def as_text(rows: Sequence[Row]) -> str:
    """Returns rows as lines of text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(rows: Sequence[Row]) -> str:
    """Returns rows, the first of which is the header, as a Markdown table for TensorBoard."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _shape(variable: Any) -> str:
    return "x".join(map(str, variable.shape.as_list())) or "scalar"


def _numbers(variable: Any) -> int:
    return int(variable.shape.num_elements() or 0)


def bytes_of(variable: Any) -> int:
    """Returns the bytes of a variable; 0 if its shape is not known."""
    return _numbers(variable) * int(variable.dtype.base_dtype.size)
