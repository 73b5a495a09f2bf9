"""Writes the migrated program of a script, with its modules, to a folder of its own."""

from __future__ import annotations

import os

from compat.scripts.migrating import files
from compat.scripts.reading import modules
from compat.scripts.rules import catalog


def write(script: str, folder: str) -> str:
    """Migrates a script and its own modules to `folder`; returns the path of the new program.

    `folder` also gets links to the other files beside the script.

    Raises:
      UserError: A file cannot be migrated.
    """
    root = os.path.dirname(os.path.abspath(script))
    for path in [os.path.abspath(script), *modules.imported(script)]:
        new = files.migrated(path, catalog.RULES, is_imported=path != os.path.abspath(script))
        output = os.path.join(folder, os.path.relpath(path, root))
        files.write(output, files.content(path, new.text))
    for place, _, _ in list(os.walk(folder)):
        beside = os.path.join(root, os.path.relpath(place, folder))
        for name in os.listdir(beside):
            if not os.path.lexists(os.path.join(place, name)) and name != "__pycache__":
                os.symlink(os.path.join(beside, name), os.path.join(place, name))
    return os.path.join(folder, os.path.basename(script))
