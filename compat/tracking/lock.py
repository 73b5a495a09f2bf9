"""A lock on a file that vanishes with the process that holds it."""

from __future__ import annotations

import fcntl
import time
from typing import BinaryIO

from compat.errors import UserError


def lock(path: str, busy: str, patience: float = 0.0) -> BinaryIO:
    """Opens `path` for appending and locks it, until the returned file is closed.

    A lock of the kernel's (flock), not the existence of a file: nothing is left to clean up after
    a process that was killed. A forked child shares the lock, a child that is another program does
    not.

    Args:
      path: The file; made if there is none.
      busy: The sentence for the user when another process holds the lock.
      patience: For how many seconds to wait for the other process first.

    Raises:
      UserError: If another process holds the lock.
      OSError: If the file cannot be opened.
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
