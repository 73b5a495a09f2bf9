"""Provides the names of `compat.estimator`: its own, and all others from tensorflow-estimator."""

from __future__ import annotations

import importlib
from typing import Any

from compat.errors import UserError

_HERE = "compat.estimator."
_CHANGED = {
    "RunConfig": "config",
    "train_and_evaluate": "cluster",
}


def _package() -> Any:
    try:
        return importlib.import_module(_HERE + "package")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("tensorflow_estimator", "tf_keras"):
            raise
        raise UserError(
            f"compat.estimator needs the package {error.name}, which is not installed; "
            "pip install 'compat-experiments[scripts]'"
        ) from None


def __getattr__(name: str) -> Any:
    if name[:1] == "_":  # Python asks for private names.
        raise AttributeError(f"module 'compat.estimator' has no attribute {name!r}")
    names = _package().names
    if name == "inputs":
        return importlib.import_module(_HERE + name)
    if name in _CHANGED:
        return getattr(importlib.import_module(_HERE + _CHANGED[name]), name)
    value = getattr(names, name)
    is_estimator = isinstance(value, type) and issubclass(value, names.Estimator)
    return importlib.import_module(_HERE + "training").trained(value) if is_estimator else value


def __dir__() -> list[str]:
    return [name for name in dir(_package().names) if name[0] != "_"]
