"""Defers optional imports of other modules until first use."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Makes imports of modules that are not loaded yet fail inside, as if not installed."""
    absent: dict[str, Any] = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules.update(absent)  # A module that is None cannot be imported.
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)
