"""Locks files, and replaces them atomically."""

from __future__ import annotations

import fcntl
import os
import time
from typing import BinaryIO

from compat.errors import UserError


def lock(path: str, busy: str, patience: float = 0.0) -> BinaryIO:
    """Opens `path` for appending and locks it until the returned file is closed.

    The kernel's lock (flock) vanishes with the process that holds it, so a killed process leaves
    nothing to clean up. A forked child shares it, one that runs another program does not.

    Args:
      path: the file; created if it does not exist.
      busy: the message if another process holds the lock.
      patience: seconds to wait for that process.

    Raises:
      UserError: another process holds the lock.
      OSError: the file cannot be opened.
    """
    file = open(path, "ab", buffering=0)  # noqa: SIM115 (held by the caller)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() >= deadline:
                file.close()
                raise UserError(busy) from None
            time.sleep(0.05)


def write_atomically(path: str, text: str) -> None:
    """Writes a small file such that a reader gets either all of the old text or all of the new."""
    with open(path + ".tmp", "w") as file:
        file.write(text)
    os.replace(path + ".tmp", path)
