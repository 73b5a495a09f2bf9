"""A finding of `compat doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
      name: what was checked, such as "protobuf".
      text: what was found.
      remedy: the command that fixes it; "" if nothing is wrong.
    """

    name: str
    text: str
    remedy: str = ""
