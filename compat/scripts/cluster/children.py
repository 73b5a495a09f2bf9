"""Makes Python processes that a script starts run under `python -m compat run` as well.

A folder with a module `sitecustomize` is put on PYTHONPATH. Python imports the module at startup,
and it replaces the child's program with `python -m compat run`.
"""

from __future__ import annotations

import json
import os
import sys

from compat.scripts.cluster import environment

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "site")


def prepare(options: list[str]) -> None:
    """Makes every Python process that this one starts run with the same options."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(SITE)))
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if root not in known:  # `compat` itself, if it is not installed.
        known.append(root)
    os.environ["PYTHONPATH"] = os.pathsep.join([SITE] + [path for path in known if path != SITE])
    os.environ[environment.OPTIONS] = json.dumps(options)
    if SITE in sys.path:
        sys.path.remove(SITE)
