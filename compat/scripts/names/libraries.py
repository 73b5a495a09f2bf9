"""Provides NumPy and other packages with the names that newer releases removed or moved."""

from __future__ import annotations

import functools
import importlib
import types
from typing import Any

import numpy as np

_MODULES = {
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.learning_curve": "sklearn.model_selection",
    "six.moves.cPickle": "pickle",
}


def has_moved(name: str) -> bool:
    """Whether a module had this name; does not import it."""
    return name in _MODULES


def moved(name: str) -> Any | None:
    """Returns the module that replaces `name`, or None if it has not moved."""
    if not has_moved(name):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return importlib.import_module(_MODULES[name])


def with_moved(module: types.ModuleType, attributes: list[str]) -> types.ModuleType:
    """Returns a package, with those of the attributes that are moved modules."""
    found = {a: moved(f"{module.__name__}.{a}") for a in attributes if not hasattr(module, a)}
    found = {name: replacement for name, replacement in found.items() if replacement is not None}
    if not found:
        return module
    view = types.ModuleType(module.__name__, module.__doc__)
    view.__dict__.update(vars(module), **found)
    view.__dict__["__getattr__"] = lambda name: getattr(module, name)
    return view


def _asfarray(array: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(array, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "") -> Any:
    if sep:
        return np.fromstring(string, dtype, count, sep=sep)
    return np.frombuffer(string, dtype, count).copy()


# NumPy 2 gives `np.bool` and `np.str` new meanings; older releases warn of them.
_NUMPY_NAMES: dict[str, Any] = {
    **{kind.__name__: kind for kind in (bool, complex, float, int, object, str)},
    **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), np.inf),
    **dict.fromkeys(("NAN", "NaN"), np.nan),
    "NINF": -np.inf,
    "NZERO": -0.0,
    "PZERO": 0.0,
    "alltrue": np.all,
    "asfarray": _asfarray,
    "asscalar": lambda array: np.asarray(array).item(),
    "complex_": np.complex128,
    "cumproduct": np.cumprod,
    "float_": np.float64,
    "fromstring": _fromstring,  # NumPy 2.3 and later refuse bytes.
    "in1d": lambda first, second, **options: np.isin(np.ravel(first), second, **options),
    "long": int,
    "msort": lambda array: np.sort(array, axis=0),
    "product": np.prod,
    "row_stack": np.vstack,
    "singlecomplex": np.complex64,
    "sometrue": np.any,
    "string_": np.bytes_,
    "unicode": str,
    "unicode_": np.str_,
}


def removed(package: str) -> frozenset[str]:
    """Returns the names that a package once had, and today's has not or with another meaning."""
    return frozenset(_NUMPY_NAMES if package == "numpy" else ())


class OldNumpy(types.ModuleType):
    """NumPy with its removed names."""

    def __getattr__(self, name: str) -> Any:
        return _NUMPY_NAMES[name] if name in _NUMPY_NAMES else getattr(np, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(np), *_NUMPY_NAMES})


@functools.lru_cache(maxsize=None)
def numpy() -> OldNumpy:
    """Returns the module that a script gets for `import numpy`."""
    module = OldNumpy("numpy", np.__doc__)
    module.__dict__.update(__path__=np.__path__, __version__=np.__version__)
    return module
