"""Migrates the files of scripts, and writes new ones."""

from __future__ import annotations

import re
from typing import Sequence

from compat.errors import UserError, unless_usable
from compat.scripts.migrating import installed, migration, runtimes
from compat.scripts.migrating.beside import Beside
from compat.scripts.reading import conversion
from compat.scripts.rules.rule import Rule
from compat.tracking.files import beside as replacing

_COOKIE = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)?[ \t]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")


def migrated(
    path: str,
    chosen: Sequence[Rule],
    to: str = "v1",
    own: Beside | None = None,
    is_imported: bool = False,
) -> migration.Migrated:
    """Returns the migrated program of a script.

    Args:
      path: the file of the script.
      chosen: the rules to apply.
      to: "v1" for a program on `compat.v1`, or "compat" for one that runs on either runtime.
      own: the migrated modules of the script; its imports are changed to their new names.
      is_imported: whether to migrate the file even if it does not use TensorFlow, because a script
        that does imports it or is imported by it; see `migration.migrate`.

    Raises:
      UserError: the file is a notebook, or cannot be read or migrated.
    """
    if path.endswith(".ipynb"):
        raise UserError(f"{path} is a notebook, expected a script; export it as one")
    (source,) = conversion.read(path)
    try:
        found = migration.migrate(source, chosen, is_imported)
        if to == "v1":
            return installed.prepared(path, found)
        text = own.renamed(path, found.text) if own else found.text
        return runtimes.migrate(path, found._replace(text=text))
    except SyntaxError as error:
        place = f"{path}:{error.lineno or 1}"
        raise UserError(f"{place}: {' '.join(str(error.msg).split())}; correct it") from None


def content(path: str, text: str) -> bytes:
    """Returns the bytes of a new program: in UTF-8, with the line ends of the old file.

    If `text` is that of the old file, they are the bytes of the old file.
    """
    with open(path, "rb") as file:
        old = file.read()
    if text == conversion.read(path)[0].text:
        return old
    cookie = _COOKIE.match(text)
    if cookie is not None:
        text = f"{text[: cookie.start(1)]}utf-8{text[cookie.end(1) :]}"
    return text.replace("\n", "\r\n" if b"\r\n" in old else "\n").encode()


def write(path: str, content: bytes) -> None:
    """Writes a new program; raises `UserError` where that is not possible."""
    remedy = "name another place with --output"
    with unless_usable(f"{path} cannot be written", remedy), replacing(path) as unfinished:
        unfinished.write_bytes(content)
