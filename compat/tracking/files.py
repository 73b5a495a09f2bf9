"""Locks files, replaces them atomically, and refuses folders that cannot be written to."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Iterator

from compat.errors import UserError, unless_usable


def lock(path: str, busy: str, patience: float = 0.0) -> BinaryIO:
    """Opens `path` for appending and locks it until the returned file is closed.

    The kernel's lock (flock) vanishes with the process that holds it, so a killed process leaves
    nothing to clean up. A forked child shares it, one that runs another program does not. If
    another process holds it for `patience` seconds, `busy` is the message of a `UserError`.
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
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


@contextlib.contextmanager
def beside(path: str) -> Iterator[Path]:
    """Yields a hidden path beside `path`, which becomes `path` if the block ends without an error.

    For a file or a folder; folders on the way to it are created.
    """
    target = Path(os.path.abspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=str(target.parent)) as hidden:
        yield Path(hidden) / target.name
        (Path(hidden) / target.name).replace(target)


@contextlib.contextmanager
def writing_to(logdir: str) -> Iterator[None]:
    """Makes a log folder; an `OSError` while it is written to becomes a `UserError`."""
    remedy = "expected a folder with room; give another one"
    with unless_usable(f"log folder {logdir!r} cannot be written to", remedy):
        os.makedirs(logdir, exist_ok=True)
        yield
