"""Which files may go to a store: those of the log folder, whatever its spool says.

The spool names them, and whoever can write to the log folder can write the spool.

Example:
  >>> reason_refused("/logs", "/etc/passwd", "checkpoint")
  "'/etc/passwd' lies outside the log folder '/logs'"
"""

from __future__ import annotations

import os
import re
from typing import Iterator


def reason_refused(logdir: str, path: str, folder: str) -> str | None:
    """Returns why a file or folder may not be uploaded, or None.

    Args:
      logdir: the log folder.
      path: what is to be uploaded; links are followed, also those in a folder.
      folder: where it goes among the run's artifacts, with slashes.
    """
    root = os.path.realpath(logdir)
    for found in _found(path):
        real = os.path.realpath(found)
        if os.path.commonpath([root, real]) != root:
            return f"{found!r} lies outside the log folder {logdir!r}"
    # A backslash parts folders on a server that runs Windows.
    parts = re.split(r"[/\\]", folder)
    if folder and (".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in folder):
        return f"folder {folder!r} is not below the run's artifacts"
    return None


def _found(path: str) -> Iterator[str]:
    yield path
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            yield os.path.join(folder, name)
