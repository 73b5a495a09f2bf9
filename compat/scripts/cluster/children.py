"""Python processes that a script starts: they see the same `tensorflow`.

A folder with a `sitecustomize` of ours goes on PYTHONPATH. Python imports it at its start, and it
starts `python -m compat run` in the place of the child's program.
"""

from __future__ import annotations

import json
import os
import sys

from compat.scripts.cluster import environment

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "site")


def prepare(options: list[str]) -> None:
    """Has every Python process that this one starts run under the same options."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(SITE)))
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if root not in known:  # `compat` itself, where it is not installed.
        known.append(root)
    os.environ["PYTHONPATH"] = os.pathsep.join([SITE] + [path for path in known if path != SITE])
    os.environ[environment.OPTIONS] = json.dumps(options)
    if SITE in sys.path:
        sys.path.remove(SITE)
