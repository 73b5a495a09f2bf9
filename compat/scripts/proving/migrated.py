"""Writes the migrated program of a script, with its modules, to a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from compat.errors import UserError
from compat.scripts.reading import modules


def write(script: str, folder: str) -> str:
    """Migrates a script and the modules of its own that it imports; returns the new program.

    The new folder has links to the other files beside the script.

    Raises:
      UserError: A file cannot be migrated.
    """
    root = os.path.dirname(os.path.abspath(script))
    for path in [os.path.abspath(script), *modules.imported(script)]:
        _migrate(path, os.path.join(folder, os.path.relpath(path, root)))
    for place, _, _ in list(os.walk(folder)):
        beside = os.path.join(root, os.path.relpath(place, folder))
        for name in os.listdir(beside):
            if not os.path.lexists(os.path.join(place, name)) and name != "__pycache__":
                os.symlink(os.path.join(beside, name), os.path.join(place, name))
    return os.path.join(folder, os.path.basename(script))


def _migrate(path: str, output: str) -> None:
    command = [sys.executable, "-m", "compat", "migrate", path, f"--output={output}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):
        raise UserError(
            done.stderr.strip().rpartition("error: ")[2] or f"{path} cannot be migrated"
        )
    if not os.path.exists(output):  # The script needed no change.
        os.makedirs(os.path.dirname(output), exist_ok=True)
        shutil.copyfile(path, output)
