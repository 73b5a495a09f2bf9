"""A small disk, which a test fills and frees."""

from __future__ import annotations

import contextlib
import errno
import subprocess
from pathlib import Path
from typing import Iterator

_BLOCK = b"\0" * 65536


class Disk:
    """A file system of its own; made by `mounted`.

    Attributes:
      folder: where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Takes all the room that is left."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (len(_BLOCK), 1):
                try:
                    while True:
                        file.write(_BLOCK[:size])
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Gives the room back."""
        self._ballast.unlink()

    def resize(self, megabytes: int) -> None:
        """Makes it larger or smaller."""
        options = f"remount,size={megabytes}m"
        subprocess.run(["mount", "-o", options, str(self.folder)], check=True, timeout=30)


@contextlib.contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Mounts a disk of this size in a new folder, and unmounts it in the end.

    Raises:
      PermissionError: this user may not mount.
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    done = subprocess.run(mount, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
    if done.returncode != 0:
        said = done.stdout.decode().strip()
        raise PermissionError(f"mounting a small disk needs root ({said})")
    try:
        yield Disk(folder)
    finally:
        # Lazily: a process that was just killed may still have a file open.
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=30)
