"""Writes the migrated program of a script, with its modules, into a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import Iterator

from compat.errors import UserError

_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+(.+)|import\s+(.+))$", re.MULTILINE)


def write(script: str, folder: str) -> str:
    """Migrates a script and those of its own modules that it imports; returns the new program.

    The new folder also shows, as links, what else is beside the script.

    Raises:
      UserError: one cannot be migrated.
    """
    root = os.path.dirname(os.path.abspath(script))
    waiting, done = [os.path.abspath(script)], set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        _migrate(path, os.path.join(folder, os.path.relpath(path, root)))
        waiting.extend(_imported(path, root))
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
    if not os.path.exists(output):  # There was nothing to change.
        os.makedirs(os.path.dirname(output), exist_ok=True)
        shutil.copyfile(path, output)


def _imported(path: str, root: str) -> Iterator[str]:
    """Yields the files below a folder that a script imports, by the text of its statements."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    for source, names, modules in _IMPORT.findall(text):
        listed = re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", names or modules))
        found = [f"{source}.{name}" for name in listed] + [source] if source else listed
        for module in found:
            parts = module.strip(".").split(".")
            for base in {root, os.path.dirname(path)}:
                packages = [os.path.join(base, *parts[:n], "__init__.py") for n in range(1, 9)]
                for own in {os.path.join(base, *parts) + ".py", *packages}:
                    if os.path.isfile(own):
                        yield os.path.abspath(own)
