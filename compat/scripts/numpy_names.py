"""NumPy as scripts knew it: with the names that 1.24 and 2.0 took away."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

import numpy as np

_ALIASES: dict[str, Any] = {
    "Inf": np.inf,
    "Infinity": np.inf,
    "NAN": np.nan,
    "NINF": -np.inf,
    "NZERO": -0.0,
    "NaN": np.nan,
    "PINF": np.inf,
    "PZERO": 0.0,
    "bool": bool,
    "complex": complex,
    "complex_": np.complex128,
    "float": float,
    "float_": np.float64,
    "infty": np.inf,
    "int": int,
    "long": int,
    "object": object,
    "singlecomplex": np.complex64,
    "str": str,
    "string_": np.bytes_,
    "unicode": str,
    "unicode_": np.str_,
}


def _asfarray(array: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(array, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "") -> Any:
    if sep:
        return np.fromstring(string, dtype, count, sep=sep)
    return np.frombuffer(string, dtype, count).copy()


_ALIASES["fromstring"] = _fromstring  # Bytes are refused since NumPy 2.3.

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "alltrue": np.all,
    "asfarray": _asfarray,
    "asscalar": lambda array: np.asarray(array).item(),
    "cumproduct": np.cumprod,
    "in1d": lambda first, second, **options: np.isin(np.ravel(first), second, **options),
    "msort": lambda array: np.sort(array, axis=0),
    "product": np.prod,
    "row_stack": np.vstack,
    "sometrue": np.any,
}


class OldNumpy(types.ModuleType):
    """NumPy, and what it had."""

    def __getattr__(self, name: str) -> Any:
        # `np.bool` and `np.str` are back in NumPy 2 with other meanings.
        if name in _ALIASES:
            return _ALIASES[name]
        try:
            return getattr(np, name)
        except AttributeError:
            if name not in _FUNCTIONS:
                raise
            return _FUNCTIONS[name]

    def __dir__(self) -> list[str]:
        return sorted({*dir(np), *_ALIASES, *_FUNCTIONS})


@functools.lru_cache(maxsize=None)
def numpy() -> OldNumpy:
    """Returns the module that a script gets for `import numpy`."""
    module = OldNumpy("numpy", np.__doc__)
    module.__path__ = np.__path__
    module.__dict__["__version__"] = np.__version__
    return module
