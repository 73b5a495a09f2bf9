"""A finding of `compat doctor`."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """A line of the report; `remedy` is the command that fixes it, "" if nothing is wrong."""

    name: str
    text: str
    remedy: str = ""
