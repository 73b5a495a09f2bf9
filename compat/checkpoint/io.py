"""The checkpoints of a folder: locks the folder, lists them, and finds the one to resume from."""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import Any

from compat._tensorflow import quietly, tf1
from compat.checkpoint import files
from compat.checkpoint.folder_lock import FolderLock
from compat.errors import UserError

BASENAME = "model.ckpt"  # The default prefix of checkpoints, without the step.


class CheckpointIO:
    """The checkpoints in a folder, for both runtimes.

    Only the chief writes checkpoints: its saver does, at the intervals of its supervisor or of a
    hook. The chief holds the lock of the folder from before its first session until its last one is
    closed; `chief.lock` names the holder. Checkpoints are written to a temporary folder, and
    renamed when they are complete (`files.unfinished`, `files.finish`). The next holder removes the
    temporary files of a process that was killed.

    Evaluators, exports and other tasks list and read checkpoints without the lock.

    Args:
      folder: the folder; None if there are no checkpoints to resume from.
      saver: a saver of `compat` or of TensorFlow, which reads the checkpoint to resume from.
      basename: the prefix, without the step, of the checkpoints that the run writes.

    Attributes:
      folder: the folder.
      prefixes: the prefixes of the checkpoints that `recover` found last, oldest first.
      newest: the prefix of the newest complete one of these; None if there is none.
    """

    def __init__(self, folder: Any, saver: Any = None, basename: str = BASENAME) -> None:
        self.folder = os.fspath(folder) if folder else None
        self._saver = saver
        self._basename = basename
        self.prefixes: list[str] = []
        self.newest: str | None = None
        self._kept: Any = None
        self._lock: FolderLock | None = None

    def hold(self) -> CheckpointIO:
        """Keeps other processes from writing checkpoints to the folder, if there is one.

        Raises:
          UserError: another process holds the lock of the folder.
        """
        if self._lock is None and self.folder:
            self._lock = FolderLock(self.folder)
        return self

    def close(self) -> None:
        """Releases the lock of the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def history(self) -> list[str]:
        """Returns the prefixes of the checkpoints, oldest first; a run resumes from the last one.

        The last one is the one that TensorFlow reads, from the first line of the file `checkpoint`.
        """
        if self.folder is None:
            return []
        newest, listed = _named(self.folder)
        # A run that goes back to an earlier checkpoint ignores the later ones, which are kept.
        if newest in listed:
            after = listed.index(newest) + 1
            listed = [*listed[after:], *listed[: after - 1]]
        there, names = files.in_folder(self.folder), [*listed, newest]
        return [os.path.join(self.folder, n) for n in names if files.are_of(n, there)]

    def resumable(self) -> list[str]:
        """Returns `history()`, for a run that resumes from the last checkpoint, or begins.

        Raises:
          UserError: the folder is that of an earlier run, but has no checkpoint to resume from.
        """
        paths = self.history()
        if self.folder and not paths:
            self._check_unnamed(self.folder)
        return paths

    def hold_to_resume(self) -> CheckpointIO:
        """Locks the folder, and checks that a run can resume or begin there; returns this object.

        Called if hooks of TensorFlow write the checkpoints. Unlocks the folder if the check fails.

        Raises:
          UserError: as `hold` and `resumable`.
        """
        self.hold()
        try:
            self.resumable()
        except BaseException:
            self.close()
            raise
        return self

    def recover(self) -> Any:
        """Returns the values of the newest whole checkpoint, by name, for the saver's variables.

        Returns None if there is no checkpoint, or if TensorFlow's saver reads it.

        Raises:
          UserError: it cannot be read, or the file `checkpoint` does not name the checkpoints.
        """
        self.prefixes, self._kept = self.resumable(), None
        self.newest = self.prefixes[-1] if self.prefixes else None
        values = None
        recover = getattr(self._saver, "recover", None)  # TensorFlow's saver has no `recover`.
        if self.prefixes and recover is not None:
            values = recover(self.prefixes)
            self.newest = self._saver.last_checkpoints[-1]
        elif self._saver is not None:
            self._saver.recover_last_checkpoints(self.prefixes)
        return values

    def check(self) -> None:
        """Reads the newest checkpoint, and keeps its values for the first `take`."""
        self._kept = self.recover()

    def take(self) -> Any:
        """Returns the values for the next session, as `recover` does.

        The first call after `check` returns the values that `check` has read, unless there is a
        newer checkpoint. Otherwise this reads the newest checkpoint.
        """
        kept, self._kept = self._kept, None
        return self.recover() if kept is None or self.prefixes != self.resumable() else kept

    def wait(self, max_secs: float, every: float) -> None:
        """Blocks until the folder has a checkpoint; raises `UserError` after `max_secs`."""
        deadline = time.monotonic() + max_secs
        while self.folder and not self.history():
            if time.monotonic() >= deadline:
                raise UserError(
                    f"{self.folder} has no checkpoint after {max_secs:g} s, for which "
                    "wait_for_checkpoint=True waits; start what writes it, or raise max_wait_secs"
                )
            time.sleep(every)

    def _check_unnamed(self, folder: str) -> None:
        """Raises `UserError` if the file `checkpoint` does not name existing checkpoints."""
        newest, _ = _named(folder)
        pattern = re.compile(re.escape(self._basename) + r"-(\d+)\.index")
        unnamed = [match for match in map(pattern.fullmatch, files.in_folder(folder)) if match]
        there = f"names {newest}, which is not there" if newest else "names none of them"
        anew = "choose another log folder to start anew"
        if unnamed:
            last = max(unnamed, key=lambda match: int(match.group(1))).group()[: -len(".index")]
            raise UserError(
                f"log folder {folder} holds checkpoints up to {last}, and its file `checkpoint` "
                f'{there}; write the line model_checkpoint_path: "{last}" to that file to resume, '
                f"or remove the checkpoints and that file, or {anew}"
            )
        if newest:
            raise UserError(
                f"the file `checkpoint` in log folder {folder} {there}; put the files of that "
                f"checkpoint into the folder to resume, or remove the file `checkpoint`, or {anew}"
            )


def _named(folder: str) -> tuple[str, list[str]]:
    """Returns the names in the file `checkpoint`: the one to resume from ("" if none), and all."""
    file = os.path.join(folder, "checkpoint")
    # A ValueError: the file is not text, or a name in it cannot be a file name.
    with contextlib.suppress(ValueError), quietly():
        state = tf1.train.get_checkpoint_state(folder)
        if state is not None:
            # Only the last part of a prefix counts: the folder may have been moved or copied.
            listed = [os.path.basename(name) for name in state.all_model_checkpoint_paths]
            return os.path.basename(state.model_checkpoint_path), listed
    if tf1.gfile.Exists(file):
        raise UserError(
            f"{file} does not name the checkpoints of its folder, as it should; choose "
            "another log folder, or remove the file to start anew"
        )
    return "", []
