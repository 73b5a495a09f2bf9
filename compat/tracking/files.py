"""Locks files, replaces them atomically, and refuses folders that cannot be written to.

Another user may have prepared a log folder, so nothing is written through a link in it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO, Iterator, cast

from compat.checkpoint.folder_lock import UNFINISHED, begun, token
from compat.errors import UserError, unless_usable

_number = itertools.count()  # Numbers the files that this process creates.


class BusyError(UserError):
    """Another process holds a file."""


def appending(path: str) -> BinaryIO:
    """Opens a file to append to, without a buffer; raises `OSError` if it is a link.

    A write appends all of its data or, with an `OSError` as on a full disk, none of it.
    """
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, f"{os.path.basename(path)} is a link", path) from error
        raise
    return cast(BinaryIO, _Whole(descriptor, "ab"))


class _Whole(io.FileIO):
    """A file to append to; it removes a record of which only a part could be written."""

    def write(self, data: Any) -> int:
        written = 0
        try:
            while written < len(data):
                written += super().write(data[written:]) or 0
        except OSError:
            end = os.fstat(self.fileno()).st_size
            if self.tell() == end:  # Only if no other process has written since.
                os.ftruncate(self.fileno(), end - written)
            raise
        return written


def local_folder(folder: str) -> str:
    """Returns the absolute path of a log folder, or raises `UserError` if it is a URL."""
    if "://" in folder:
        raise UserError(
            f"log folder {folder} is a URL, and the record of a run is written to a folder of this "
            "machine; name one, or mount it"
        )
    return os.path.abspath(os.path.expanduser(folder))


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Opens a new file, which replaces `path` if the block ends without an error."""
    folder, name = os.path.split(path)
    hidden = os.path.join(folder, f"{UNFINISHED}{token()}-{next(_number)}-{name}")
    try:
        with begun(hidden) as file:
            yield file
            file.flush()
            os.replace(hidden, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(hidden)
        raise


def lock(path: str, busy: str, patience: float = 0.0) -> BinaryIO:
    """Opens `path` for appending and locks it until the returned file is closed.

    The kernel's lock (flock) vanishes with the process that holds it, so a killed process leaves
    nothing to clean up. A forked child shares it, one that runs another program does not. If
    another process holds it for `patience` seconds, `busy` is the message of a `BusyError`.
    """
    file = appending(path)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() >= deadline:
                file.close()
                raise BusyError(busy) from None
            time.sleep(0.05)


def write_atomically(path: str, text: str) -> None:
    """Writes a small file atomically: a reader gets either the old text or the new one."""
    with replacing(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def beside(path: str) -> Iterator[Path]:
    """Yields a hidden path beside `path`, and renames it to `path` after a block without error.

    The path may be of a file or a folder. Missing parent folders are created.
    """
    target = Path(os.path.abspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=str(target.parent)) as hidden:
        yield Path(hidden) / target.name
        (Path(hidden) / target.name).replace(target)


@contextlib.contextmanager
def writing_to(logdir: str) -> Iterator[None]:
    """Creates a log folder; converts an `OSError` of writing to it to a `UserError`."""
    remedy = "expected a folder with room; give another one"
    with unless_usable(f"log folder {logdir!r} cannot be written to", remedy):
        os.makedirs(logdir, exist_ok=True)
        yield
