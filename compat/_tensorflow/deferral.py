"""Defers optional imports of other modules until first use."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Makes imports of some modules fail inside the context, as if they were not installed.

    Args:
      names: modules to defer; those that are already loaded stay available.
    """
    absent: dict[str, Any] = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules.update(absent)  # A module that is None cannot be imported.
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)
