"""Finds the checkpoint from which a supervisor resumes."""

from __future__ import annotations

import os
import time
from typing import Any

from compat._tensorflow import tf1
from compat.checkpoint import files
from compat.checkpoint.folder_lock import FolderLock
from compat.checkpoint.saver import Saver
from compat.errors import UserError
from compat.runtime.interface import current_runtime


def default_saver() -> Any:
    """Returns the saver of a program that gives none; None where it has no variables."""
    runtime = current_runtime()
    if not runtime.has_graph:
        return Saver() if runtime.variables() else None
    collected = tf1.get_collection_ref(tf1.GraphKeys.SAVERS)
    if not collected and runtime.variables():
        collected.append(Saver())
    return collected[0] if collected else None


def checked_saver(saver: Any) -> Any:
    """Returns `saver`, unless it is TensorFlow's, which the modern runtime does not support."""
    if not (saver is None or _is_ours(saver) or current_runtime().has_graph):
        raise UserError(
            f"saver={saver!r} needs a graph, which the modern runtime does not have; pass a "
            "compat.Saver, or use --runtime=legacy"
        )
    return saver


def folder_of_hooks(folder: str) -> FolderLock:
    """Holds a folder to which TensorFlow's hooks save checkpoints, until the lock is closed.

    Raises:
      UserError: another process holds it, or it has checkpoints that nothing names.
    """
    lock = FolderLock(folder)
    try:
        if not files.history(folder):
            files.check_named(folder, "model.ckpt")
    except BaseException:
        lock.close()
        raise
    return lock


def _is_ours(saver: Any) -> bool:
    return isinstance(saver, current_runtime().saver_class)


class Recovery:
    """The newest whole checkpoint in a log folder, for a saver of ours or TensorFlow's."""

    def __init__(self, logdir: str | None, saver: Any, basename: str) -> None:
        self._logdir = os.fspath(logdir) if logdir and saver else None
        self._saver = saver
        self._basename = basename  # Of the checkpoints that the run writes, without the step.
        self.prefixes: list[str] = []  # Of the checkpoints found last, oldest first.
        self.newest: str | None = None  # The last of them that is whole.
        self._kept: Any = None
        self._lock: FolderLock | None = None

    def hold_folder(self) -> None:
        """Keeps other processes from writing checkpoints to the log folder, if there is one.

        Raises:
          UserError: another process holds it.
        """
        if self._lock is None and self._logdir:
            self._lock = FolderLock(self._logdir)

    def release_folder(self) -> None:
        """Lets others have the log folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _history(self) -> list[str]:
        found = files.history(self._logdir) if self._logdir else []
        if self._logdir and not found:
            files.check_named(self._logdir, self._basename)
        return found

    def read(self) -> Any:
        """Returns its values by name; None if there is none, or if TensorFlow's saver reads it.

        Raises:
          UserError: it cannot be read, or the folder has checkpoints that nothing names.
        """
        self.prefixes, self._kept = self._history(), None
        self.newest = self.prefixes[-1] if self.prefixes else None
        values = None
        if self.prefixes and _is_ours(self._saver):
            values = self._saver.recover(self.prefixes)
            self.newest = self._saver.last_checkpoints[-1]
        elif self._saver is not None:
            self._saver.recover_last_checkpoints(self.prefixes)
        return values

    def check(self) -> None:
        """Reads it, and keeps the values for the first `take`."""
        self._kept = self.read()

    def take(self) -> Any:
        """Returns what `read` returns; a checkpoint is read anew for each session."""
        kept, self._kept = self._kept, None
        return self.read() if kept is None or self.prefixes != self._history() else kept

    def wait(self, max_secs: float, every: float) -> None:
        """Blocks until there is a checkpoint; raises `UserError` if there was none in time."""
        deadline = time.monotonic() + max_secs
        while self._logdir and not files.history(self._logdir):
            if time.monotonic() >= deadline:
                raise UserError(
                    f"{self._logdir} has no checkpoint after {max_secs:g} s, for which "
                    "wait_for_checkpoint=True waits; start what writes it, or raise max_wait_secs"
                )
            time.sleep(every)
