"""Uses canned estimators of TensorFlow 2 for arguments that those of 1.x do not accept."""

from __future__ import annotations

import importlib
from typing import Any

_CANNED = ("baseline", "dnn", "dnn_linear_combined", "linear")


def accept(package: str) -> None:
    """Makes estimators of `package` accept heads of TensorFlow 2 and Keras optimizers."""
    head: Any = importlib.import_module(package + "head.base_head").Head
    estimator: Any = importlib.import_module(package + "estimator").Estimator
    for module in _CANNED:
        names = vars(importlib.import_module(package + "canned." + module))
        for name, kind in [*names.items()]:
            if isinstance(kind, type) and issubclass(kind, estimator) and name + "V2" in names:
                _replace(kind, names[name + "V2"], head)


def _replace(old: Any, new: Any, head: type) -> None:
    def make(cls: Any, *args: Any, **options: Any) -> Any:
        arguments = [*args, *options.values()]
        of_keras = any(isinstance(one, head) or hasattr(one, "get_updates") for one in arguments)
        return new(*args, **options) if cls is old and of_keras else object.__new__(cls)

    old.__new__ = make
