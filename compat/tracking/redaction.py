"""Keeps secrets out of whatever is logged."""

from __future__ import annotations

import re
from typing import Any, Mapping, TextIO

from compat.tracking.writer import Param

HIDDEN = "***"
# No secrets are a tokenizer, and how many tokens a model reads or writes.
_COUNTABLE = (
    r"(?<!max[-_])(?<!min[-_])(?<!num[-_])(?<!new[-_])(?<!total[-_])(?<!\bn[-_])"
    r"token(?!i[sz]|s[-_]per)"
)
_NAMES = rf"{_COUNTABLE}|passw(?:or)?d|passphrase|secret|credential|(?:api|access|private)[-_]?key"
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
_IN_TEXT = (
    # The user part of a URI. Greedy up to the last "@" before the path: a password may itself hold
    # an "@". That of a database may hold a "/", too; what follows a host's colon is a number.
    (re.compile(r"(?<=://)(?:[^/\s]*|[^/\s:@]*:(?!\d+(?:[/?#]|\b))[^\s'\"]*)(?=@)"), HIDDEN),
    # "token=...", in the query of a URI, on a command line, in the words for a database.
    (
        re.compile(
            rf"((?:(?:{_NAMES})[-\w]*|[?&](?:key|sig|[-\w]*signature|auth))=)[^\s&'\";,)]+",
            re.IGNORECASE,
        ),
        rf"\g<1>{HIDDEN}",
    ),
)


def redacted_text(text: str) -> str:
    """Returns `text` with the user part of every URI in it, and values so named, hidden.

    >>> redacted_text("http://me:pw@host:5000/x?token=abc&page=2")
    'http://***@host:5000/x?token=***&page=2'
    """
    for pattern, shown in _IN_TEXT:
        text = pattern.sub(shown, text)
    return text


def redacted(values: Mapping[str, Param]) -> dict[str, Param]:
    """Returns `values` without the secrets: those named so, and those in texts.

    >>> redacted({"api_token": "abc", "steps": 5})
    {'api_token': '***', 'steps': 5}
    """
    return {
        name: HIDDEN
        if _SECRET_NAME.search(name)
        else redacted_text(value)
        if isinstance(value, str)
        else value
        for name, value in values.items()
    }


class RedactedStream:
    """A stream of text for `sys.stdout` and `sys.stderr` that hides secrets in what is written.

    Tracebacks and other packages' logs go through it as well.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text, which is one line or more at a time where it holds a secret."""
        return self._stream.write(redacted_text(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
