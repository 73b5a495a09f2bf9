"""Modules that are left out while others load, and are loaded when they are first used."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator


@contextlib.contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Has whoever imports one of these modules meanwhile go on as if it were not installed.

    Args:
      names: of the modules; one that is loaded already is left as it is.
    """
    absent: dict[str, Any] = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules.update(absent)  # A module that is None cannot be imported.
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)
