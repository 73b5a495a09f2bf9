"""Runs a module of rows by `compat`, alone or in a cluster; prints what it saw as JSON."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compat
from compat import tf1

if TYPE_CHECKING:
    from tests.conformance.tasks import place
else:
    from tasks import place


def main(settings: dict[str, Any]) -> None:
    server, setter = place(settings)
    rows = importlib.import_module(settings["rows"])
    master = server.target if server else ""
    print(json.dumps(rows.observe(compat, tf1, str(Path.cwd()), setter, master)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
