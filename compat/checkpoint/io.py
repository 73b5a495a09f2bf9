"""The checkpoints of a folder: who writes them, which there are, and the one to resume from."""

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

BASENAME = "model.ckpt"  # Of checkpoints without their step, where a program gives no other.


class CheckpointIO:
    """The way of both runtimes to the checkpoints in a folder.

    The chief writes checkpoints, and no other task does: by its saver, at the times of its
    supervisor or of a hook. It holds the folder from before the first session until its last one is
    closed, and its holder is named in `chief.lock`. The next holder removes the unfinished files of
    a process that was killed: a checkpoint is written beside the others, and gets its name when it
    is whole (`files.unfinished`, `files.finish`).

    Evaluators, exports and other tasks list and read checkpoints, and hold nothing.

    Args:
      folder: None where there are no checkpoints to resume from.
      saver: a saver of ours or TensorFlow's, which reads what a run resumes from.
      basename: of the checkpoints that the run writes, without the step.

    Attributes:
      folder: as given.
      prefixes: of the checkpoints that `recover` found last, oldest first.
      newest: the last of them that is whole; None if there is none.
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
          UserError: another process holds it.
        """
        if self._lock is None and self.folder:
            self._lock = FolderLock(self.folder)
        return self

    def close(self) -> None:
        """Lets others hold the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def history(self) -> list[str]:
        """Returns the prefixes of the checkpoints, oldest first; the last one is resumed from.

        That is the one which TensorFlow reads, named by the first line of the file `checkpoint`.
        """
        if self.folder is None:
            return []
        newest, listed = _named(self.folder)
        if newest in listed:  # A run that goes back to it ignores the later ones, which stay.
            after = listed.index(newest) + 1
            listed = [*listed[after:], *listed[: after - 1]]
        there, names = files.in_folder(self.folder), [*listed, newest]
        return [os.path.join(self.folder, n) for n in names if files.are_of(n, there)]

    def resumable(self) -> list[str]:
        """Returns what `history` does, for a run that resumes from the last one, or begins.

        Raises:
          UserError: there is none to resume from, but the folder is that of an earlier run.
        """
        found = self.history()
        if self.folder and not found:
            self._check_unnamed(self.folder)
        return found

    def hold_to_resume(self) -> CheckpointIO:
        """Holds a folder for hooks of TensorFlow's; as `hold`, then as `resumable`."""
        self.hold()
        try:
            self.resumable()
        except BaseException:
            self.close()
            raise
        return self

    def recover(self) -> Any:
        """Returns the values of the newest whole checkpoint, by name, for the saver's variables.

        None if there is none, or if TensorFlow's saver reads it.

        Raises:
          UserError: it cannot be read, or the folder has checkpoints that nothing names.
        """
        self.prefixes, self._kept = self.resumable(), None
        self.newest = self.prefixes[-1] if self.prefixes else None
        values = None
        recover = getattr(self._saver, "recover", None)  # Of a saver of ours.
        if self.prefixes and recover is not None:
            values = recover(self.prefixes)
            self.newest = self._saver.last_checkpoints[-1]
        elif self._saver is not None:
            self._saver.recover_last_checkpoints(self.prefixes)
        return values

    def check(self) -> None:
        """Reads the newest, and keeps its values for the first `take`."""
        self._kept = self.recover()

    def take(self) -> Any:
        """Returns what `recover` returns; a checkpoint is read anew for each session."""
        kept, self._kept = self._kept, None
        return self.recover() if kept is None or self.prefixes != self.resumable() else kept

    def wait(self, max_secs: float, every: float) -> None:
        """Blocks until there is a checkpoint; raises `UserError` if there was none in time."""
        deadline = time.monotonic() + max_secs
        while self.folder and not self.history():
            if time.monotonic() >= deadline:
                raise UserError(
                    f"{self.folder} has no checkpoint after {max_secs:g} s, for which "
                    "wait_for_checkpoint=True waits; start what writes it, or raise max_wait_secs"
                )
            time.sleep(every)

    def _check_unnamed(self, folder: str) -> None:
        """Raises `UserError` if `history` finds nothing in a folder that an earlier run left."""
        newest, _ = _named(folder)
        own = re.compile(re.escape(self._basename) + r"-(\d+)\.index")
        found = [match for match in map(own.fullmatch, files.in_folder(folder)) if match]
        there = f"names {newest}, which is not there" if newest else "names none of them"
        anew = "choose another log folder to start anew"
        if found:
            last = max(found, key=lambda match: int(match.group(1))).group()[: -len(".index")]
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
    """Returns the names in the file `checkpoint`: that to resume from, "" if none, and all."""
    file = os.path.join(folder, "checkpoint")
    # A ValueError: it is not text, or a name in it cannot be a file name.
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
