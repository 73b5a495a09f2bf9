"""Keeps secrets out of whatever is logged."""

from __future__ import annotations

import re
from typing import Mapping

from experiments.metrics.interface import Param

HIDDEN = "***"
_SECRET_NAME = re.compile("token|password|secret", re.IGNORECASE)
# Greedy up to the last "@" before the path: a password may itself hold an "@".
_URI_USER = re.compile(r"(?<=://)[^/\s]*(?=@)")


def redacted_uri(text: str) -> str:
    """Returns `text` with the user part of every URI in it hidden.

    >>> redacted_uri("http://me:pw@host:5000/x")
    'http://***@host:5000/x'
    """
    return _URI_USER.sub(HIDDEN, text)


def redacted(values: Mapping[str, Param]) -> dict[str, Param]:
    """Returns `values` without the secrets: those named so, and the user parts of URIs.

    >>> redacted({"api_token": "abc", "steps": 5})
    {'api_token': '***', 'steps': 5}
    """
    return {
        name: HIDDEN
        if _SECRET_NAME.search(name)
        else redacted_uri(value)
        if isinstance(value, str)
        else value
        for name, value in values.items()
    }
