"""Names the event folders of a program as TensorBoard does: by paths below a common folder."""

from __future__ import annotations

import os
import shlex


class RunNames:
    """The folders to which a program writes events.

    The names are final when the first point is written, since most programs have opened all writers
    by then. A single folder has an empty name. A folder that is opened later is named relative to
    the common folder.
    """

    def __init__(self) -> None:
        self._folders: list[str] = []
        self._base: str | None = None

    def add(self, folder: str) -> None:
        """Adds a folder, given by its absolute path."""
        if folder not in self._folders:
            self._folders.append(folder)

    def prefix(self, folder: str) -> str:
        """Returns the prefix of the tags of a folder, such as "train/"."""
        if self._base is None:
            self._base = os.path.commonpath(self._folders)
        name = os.path.relpath(folder, os.path.commonpath([self._base, folder]))
        return "" if name == os.curdir else name.replace(os.sep, "/") + "/"

    def command(self) -> str:
        """Returns the command that shows all folders in TensorBoard."""
        base = os.path.commonpath(self._folders)
        if os.path.dirname(base) != base:
            return f"tensorboard --logdir {shlex.quote(base)}"
        # They share only the root, and TensorBoard should not search the whole machine.
        return f"tensorboard --logdir_spec {shlex.quote(','.join(self._folders))}"
