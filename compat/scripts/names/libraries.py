"""Maps modules of other packages, such as scikit-learn, to their current locations."""

from __future__ import annotations

import importlib
import types
from typing import Any

_MODULES = {
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.learning_curve": "sklearn.model_selection",
    "six.moves.cPickle": "pickle",
}


def moved(name: str) -> Any | None:
    """Returns the module that replaces `name`, or None if it has not moved."""
    now = _MODULES.get(name)
    if now is None:
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return importlib.import_module(now)


def with_moved(module: types.ModuleType, attributes: list[str]) -> types.ModuleType:
    """Returns a package with its moved modules as attributes under their old names.

    Args:
      module: such as `sklearn`.
      attributes: names that the script imports from it.
    """
    found = {a: moved(f"{module.__name__}.{a}") for a in attributes if not hasattr(module, a)}
    if not any(found.values()):
        return module
    view = types.ModuleType(module.__name__, module.__doc__)
    view.__dict__.update({k: v for k, v in vars(module).items() if k != "__getattr__"})

    def getattr_(attribute: str) -> Any:
        return getattr(module, attribute)

    view.__dict__["__getattr__"] = getattr_
    view.__dict__.update({k: v for k, v in found.items() if v is not None})
    return view
