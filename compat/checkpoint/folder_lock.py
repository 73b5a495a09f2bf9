"""The lock of a log folder, which one chief holds at a time.

Its file, `chief.lock`, names the holder: host, process id, start, and a token that is part of the
names of all files that the holder has not finished. The kernel releases its lock (flock) when the
process ends. So the next holder knows that the process in the file is dead, and removes only the
unfinished files of that process. A launcher holds the lock across restarts of its chief, which
inherits it, so that no other run can take the folder in between.

Other processes, such as the sender of records, write files to the folder as well. They lock each
file until it has its final name, so the next holder also finds and removes their abandoned files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import socket
import sys
import threading
import time
import uuid
from typing import Any, BinaryIO, Iterator

from compat.errors import UserError

FILE = "chief.lock"
UNFINISHED = ".unfinished-"  # Prefix of the names of unfinished files; the token follows.
# A process that was killed holds the lock until the kernel has removed the process.
_PATIENCE_SECS = 2.0
_INHERITED = "COMPAT_FOLDER_LOCK"  # The descriptor that the launcher has locked.
_NO_LOCK = "cannot be locked ({}); make sure that no other process writes checkpoints to it"
_TOKEN = re.compile("[0-9a-f]{16}")

_mutex = threading.RLock()
_held: dict[str, _Holding] = {}  # By real path; the supervisors of a process share a lock.
_own_token = ""


def token() -> str:
    """Returns the token that is part of the names of this process's unfinished files."""
    global _own_token
    with _mutex:
        _own_token = _own_token or uuid.uuid4().hex[:16]
        return _own_token


@contextlib.contextmanager
def begun(path: str) -> Iterator[BinaryIO]:
    """Opens a new file, whose name begins with `UNFINISHED`, and locks it until it is closed."""
    while True:
        with open(path, "xb") as file:
            with contextlib.suppress(OSError):  # The file system may have no locks.
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file.fileno(), path):  # Else `remove_abandoned` has removed it.
                yield file
                return


def remove_abandoned(folder: str) -> None:
    """Removes the unfinished files in a folder whose processes have ended."""
    for name in os.listdir(folder):
        if name.startswith(UNFINISHED):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):  # A folder, a link, or a file that is locked.
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
                finally:
                    os.close(descriptor)


class FolderLock:
    """Keeps other processes from writing to a log folder as its chief, until it is closed.

    Creates the folder; `close` removes it if it is empty. If the file system has no locks, a line
    on standard error reports that. A folder that cannot be written to is not locked, because the
    next write to it reports the error.

    Raises:
      UserError: another process holds the lock.
    """

    _holding: _Holding | None = None

    def __init__(self, folder: str) -> None:
        with _mutex:
            self._path = folder if "://" in folder else os.path.realpath(folder)
            holding = _held.get(self._path)
            if holding is None or not holding.is_in_place():
                holding = _held[self._path] = _Holding(folder)
            holding.users += 1
            self._holding = holding

    def pass_to_child(self) -> tuple[dict[str, str], tuple[int, ...]]:
        """Returns the environment variables and descriptors that share this lock with a child."""
        assert self._holding is not None
        return self._holding.pass_to_child()

    def close(self) -> None:
        """Releases the folder; a second call does nothing."""
        with _mutex:
            holding, self._holding = self._holding, None
            if holding is None:
                return
            holding.users -= 1
            if not holding.users:
                if _held.get(self._path) is holding:
                    del _held[self._path]
                holding.release()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # Python may be exiting.
            self.close()


class _Holding:
    """The lock of this process on one folder; `descriptor` is None if locks are not available."""

    def __init__(self, folder: str) -> None:
        self.users = 0
        self.descriptor: int | None = None
        self._passed: int | None = None  # A duplicate for children; forks close the original.
        self._file = os.path.join(folder, FILE)
        if "://" in folder:
            print(f"log folder {folder} {_NO_LOCK.format('it is a URL')}", file=sys.stderr)
            return
        self._made = _missing(os.path.abspath(folder))
        self._is_inherited = _is_inherited(self._file)
        try:
            self.descriptor = (
                os.dup(int(os.environ[_INHERITED]))
                if self._is_inherited
                else _locked(folder, self._file)
            )
        except OSError as error:
            if error.errno == errno.ELOOP or os.path.islink(self._file):
                raise UserError(
                    f"{self._file} is a link, which no run makes; remove it, or choose another log "
                    "folder"
                ) from error
            if os.path.exists(self._file):
                print(f"log folder {folder} {_NO_LOCK.format(error.strerror)}", file=sys.stderr)
            return
        # A full disk may have no room for the holder's name; the folder is locked nevertheless.
        with contextlib.suppress(OSError):
            stored = _read(self.descriptor)
            earlier = stored.get("token")
            if earlier is not None and earlier != token():
                _remove_unfinished(folder, earlier)
            remove_abandoned(folder)
            now = time.strftime("%Y-%m-%d %H:%M:%S %z")
            holder = {"host": socket.gethostname(), "pid": os.getpid(), "since": now}
            holder.update(stored if self._is_inherited else {})  # The launcher is the holder.
            os.ftruncate(self.descriptor, 0)
            text = json.dumps({**holder, "token": token()}) + "\n"
            os.pwrite(self.descriptor, text.encode(), 0)

    def is_in_place(self) -> bool:
        """Whether the locked file is still in the folder, which may have been replaced."""
        return self.descriptor is None or _is_at(self.descriptor, self._file)

    def pass_to_child(self) -> tuple[dict[str, str], tuple[int, ...]]:
        if self.descriptor is None:
            return {}, ()
        if self._passed is None:
            self._passed = os.dup(self.descriptor)
        return {_INHERITED: str(self._passed)}, (self._passed,)

    def release(self) -> None:
        """Releases the lock; keeps its file if the next holder needs its token to clean up."""
        if self.descriptor is None:
            return
        with contextlib.suppress(OSError):
            last = UNFINISHED + _read(self.descriptor).get("token", token())
            names = os.listdir(os.path.dirname(self._file) or ".")
            is_own = self.is_in_place() and not self._is_inherited
            if is_own and not any(name.startswith(last) for name in names):
                os.unlink(self._file)
                for folder in self._made:
                    os.rmdir(folder)
        for descriptor in (self.descriptor, self._passed):
            if descriptor is not None:
                os.close(descriptor)
        self.descriptor = self._passed = None


def release_all() -> None:
    """Releases all folders, for a process that ends without closing what holds them."""
    with _mutex:
        for holding in _held.values():
            holding.release()
        _held.clear()


def _missing(folder: str) -> list[str]:
    """Returns those of the folder and its parents that do not exist, the innermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def _locked(folder: str, path: str) -> int:
    """Returns a descriptor of the locked file; creates the file again if it was removed."""
    deadline = time.monotonic() + _PATIENCE_SECS
    while True:
        os.makedirs(folder, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # Another process has removed the folder, which was empty.
            if time.monotonic() >= deadline:
                raise
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                kept, descriptor = descriptor, -1
                return kept
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise UserError(_busy(folder, _read(descriptor))) from None
            time.sleep(0.05)
        finally:
            if descriptor >= 0:
                os.close(descriptor)


def _is_inherited(path: str) -> bool:
    """Whether this process has inherited the lock from its launcher."""
    number = os.environ.get(_INHERITED, "")
    return number.isdecimal() and _is_at(int(number), path)


def _is_at(descriptor: int, path: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _busy(folder: str, holder: dict[str, Any]) -> str:
    owner = "another process"
    if holder:
        owner = f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    return (
        f"log folder {folder} is in use by {owner}; wait until that run has ended, end it, or "
        "choose another log folder"
    )


def _read(descriptor: int) -> dict[str, Any]:
    """Returns the holder that the file names; {} if its contents are not valid."""
    kinds = {"host": str, "pid": int, "since": str, "token": str}
    try:
        content = json.loads(os.pread(descriptor, 4096, 0).decode())
        valid = all(isinstance(content[name], kind) for name, kind in kinds.items())
        return dict(content) if valid and _TOKEN.fullmatch(content["token"]) else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _remove_unfinished(folder: str, dead: str) -> None:
    """Removes the unfinished files of the dead process with this token."""
    for name in os.listdir(folder):
        if name.startswith(f"{UNFINISHED}{dead}-"):
            path = os.path.join(folder, name)
            shutil.rmtree(path, ignore_errors=True)  # Follows no links; removes no file.
            with contextlib.suppress(OSError):
                os.remove(path)


def _leave_to_parent() -> None:
    """Drops the locks in a forked child, which would keep them after its parent's death."""
    global _mutex, _own_token
    _mutex, _own_token = threading.RLock(), ""  # Another thread of the parent may hold the mutex.
    for holding in _held.values():
        if holding.descriptor is not None:
            os.close(holding.descriptor)
            holding.descriptor = None
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
