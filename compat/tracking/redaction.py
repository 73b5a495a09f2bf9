"""Removes secrets from logged values and texts."""

from __future__ import annotations

import re
from typing import Any, Mapping, TextIO

from compat.tracking.writer import Param

HIDDEN = "***"
# Names that are not secrets: a tokenizer, and numbers of tokens that a model reads or writes.
_COUNTABLE = (
    r"(?<!max[-_])(?<!min[-_])(?<!num[-_])(?<!new[-_])(?<!total[-_])(?<!\bn[-_])"
    r"token(?!i[sz]|s[-_]per)"
)
_NAMES = rf"{_COUNTABLE}|passw(?:or)?d|passphrase|secret|credential|(?:api|access|private)[-_]?key"
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
# Further names of secrets: headers of requests, and parameters in the query of a URI.
_HEADER = re.compile(r"(?:proxy-)?authorization", re.IGNORECASE)
_IN_QUERY = re.compile(r"key|sig|[-\w]*signature|auth", re.IGNORECASE)
# A flag before its value, on a command line or in a list of words; or a name before "=" or ":".
_NAMED = re.compile(
    r"""(?:(?P<line>^[ \t]*)|(?<![-\w]))(?:
        (?P<flag>-[-\w]+)(?:[ \t]+|\\*["'],[ \t]*)(?![-\s])
        |(?P<name>[-\w]+)(?P<quote>\\*["'])?[ \t]*(?::|(?P<equals>:?=+))[ \t]*
    )""",
    re.MULTILINE | re.VERBOSE,
)
# A quoted text, which may also end with its line, and whose quotes are escaped inside another text;
# or a word, which may be a call with a quoted text: `Secret('...')`.
_OPENING = re.compile(r"""[bru]{0,2}(\\*["'])""", re.IGNORECASE)
_QUOTED = r""""(?:[^"\\\n]|\\.|\\$)*(?:"|$)|'(?:[^'\\\n]|\\.|\\$)*(?:'|$)"""
_VALUE = re.compile(
    rf"""[bru]{{0,2}}(?:{_QUOTED})|\\+"[^"\n]*(?:"|$)|\\+'[^'\n]*(?:'|$)
        |(?:(?:basic|bearer)[ ]+)?[^\s&'";,()]*(?:\((?:{_QUOTED})?)?[^\s&'";,)]*""",
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
_QUOTE = re.compile("['\"]")
_USER = re.compile(r"[^/\s:@]*:(?!\d+(?:[/?#]|\b))")


def redacted_text(text: str) -> str:
    """Hides the user part of every URI in `text`, and the values of names that mean secrets.

    Takes time linear in the length of the text, which may be long and come from other programs.

    >>> redacted_text("http://me:pw@host:5000/x?token=abc&page=2")
    'http://***@host:5000/x?token=***&page=2'
    >>> redacted_text("Settings(api_key='abc', steps=5) of: train --password abc --steps 5")
    "Settings(api_key='***', steps=5) of: train --password *** --steps 5"
    """
    return _without_values(re.sub(r"://\S*", lambda match: _without_users(match[0]), text))


def _without_users(text: str) -> str:
    """Hides the user parts of URIs in a text without blanks that begins with "://".

    Hides up to the last "@" before the path, because a password may contain "@". A database's
    password may also contain "/": if a number precedes the "/", as in "host:5000/", the number is
    a port, and a path follows; else the "/" is part of the password.
    """
    kept, end = [], 0
    last, quote, before_quote = text.rfind("@"), -1, -1
    for colon in re.finditer("://", text[: last + 1]):
        start = colon.end()
        if start < end:  # This "://" is part of a password.
            continue
        slash = text.find("/", start)
        at = text.rfind("@", start, slash if slash >= 0 else len(text))
        user = _USER.match(text, start) if at < 0 else None
        if user is not None:
            if quote < user.end():  # Computed once for each quote, since a text may have many.
                opening = _QUOTE.search(text, user.end())
                quote = opening.start() if opening else len(text)
                before_quote = text.rfind("@", user.end(), quote)
            at = before_quote
        if at >= start:
            kept += [text[end:start], HIDDEN]
            end = at
    return "".join([*kept, text[end:]])


def _without_values(text: str) -> str:
    """Hides the values of names that mean secrets, and keeps their quotes."""
    kept, end = [], 0
    for match in _NAMED.finditer(text):
        opening = _OPENING.match(text, match.end())
        if match.start() < end or not _is_secret(match, opening is not None):
            continue
        value = _VALUE.match(text, match.end())
        if value is None or not value[0]:
            continue
        hidden = f"{opening[0]}{HIDDEN}{opening[1]}" if opening else HIDDEN
        kept += [text[end : match.end()], hidden]
        end = value.end()
    return "".join([*kept, text[end:]])


def _is_secret(match: re.Match[str], is_quoted: bool) -> bool:
    """Returns whether the value after a match of `_NAMED` is a secret.

    A name such as "password" may be a word of a sentence. So it counts only if it begins a line, is
    a flag, is quoted or precedes "=", or if its value is quoted (`is_quoted`).
    """
    name = match["flag"] or match["name"]
    if _SECRET_NAME.search(name):
        begins_line = match["line"] is not None
        return any((is_quoted, begins_line, match["flag"], match["equals"], match["quote"]))
    if not match["name"]:
        return False
    is_asked = match["equals"] == "=" and match.string.endswith(("?", "&"), 0, match.start())
    return bool(_HEADER.fullmatch(name) or (is_asked and _IN_QUERY.fullmatch(name)))


def redacted(values: Mapping[str, Param]) -> dict[str, Param]:
    """Hides secrets in `values`: values of names that mean secrets, and secrets in texts.

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
    """A text stream for `sys.stdout` and `sys.stderr` that hides secrets in its output.

    Tracebacks and the logs of other packages use it as well.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text; a secret is only found if one call contains its whole line."""
        return self._stream.write(redacted_text(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
