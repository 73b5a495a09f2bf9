"""Names the event folders of one program as TensorBoard does: by their places below one folder."""

from __future__ import annotations

import os
import shlex


class RunNames:
    """The folders to which a program writes events.

    Names are settled with the first point: until then, most programs have opened their writers. A
    single folder has no name; one that is opened later is named from there.
    """

    def __init__(self) -> None:
        self._folders: list[str] = []
        self._base: str | None = None

    def add(self, folder: str) -> None:
        """Adds a folder, given by its absolute path."""
        if folder not in self._folders:
            self._folders.append(folder)

    def prefix(self, folder: str) -> str:
        """Returns what stands before the tags of a folder that was added, such as "train/"."""
        if self._base is None:
            self._base = os.path.commonpath(self._folders)
        name = os.path.relpath(folder, os.path.commonpath([self._base, folder]))
        return "" if name == os.curdir else name.replace(os.sep, "/") + "/"

    def command(self) -> str:
        """Returns the command that shows all of them."""
        base = os.path.commonpath(self._folders)
        if os.path.dirname(base) != base:
            return f"tensorboard --logdir {shlex.quote(base)}"
        # They have nothing in common: not all of the machine is to be searched.
        return f"tensorboard --logdir_spec {shlex.quote(','.join(self._folders))}"
