"""What was looked at, and what mends it where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of the page.

    Attributes:
      name: what was looked at, such as "protobuf".
      text: what was found.
      mend: the command that mends it; "" where nothing is wrong.
    """

    name: str
    text: str
    mend: str = ""
