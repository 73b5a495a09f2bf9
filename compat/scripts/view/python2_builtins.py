"""Provides builtins, methods and modules that Python 3 removed."""

from __future__ import annotations

import builtins
import codecs
import decimal
import functools
import importlib
import math
import pickle  # noqa: TID251 - For scripts that import it; nothing here is unpickled for ours.
import sys
import types
from typing import Any

import numpy as np

from compat.scripts.reading.python2 import DECODE, DIVISION

_DIGITS = 1100  # Enough digits to write every float exactly.


def classic_division(left: Any, right: Any) -> Any:
    """Divides as `/` in Python 2: integers, their arrays and dimensions of tensors round down."""
    if _is_whole(left) and _is_whole(right):
        return left // right
    try:
        return left / right
    except TypeError:
        if not hasattr(left, "value"):
            raise
    return left // right  # Dimensions of TensorFlow refuse `/`.


def classic_decode(value: Any, encoding: str = "utf-8", errors: str = "strict") -> Any:
    """Decodes bytes, or anything with a method `decode`; returns strings unchanged.

    A string is only decoded if the encoding does not encode text: "hex" and "base64" decode it to
    bytes, "rot13" to a string.
    """
    if not isinstance(value, str):
        return value.decode(encoding, errors)
    try:
        "a".encode(encoding)
    except LookupError:  # The encoding does not encode text.
        is_of_strings = codecs.lookup(encoding).name == "rot-13"
        given: Any = value if is_of_strings else value.encode("utf-8")
        return codecs.decode(given, encoding, errors)
    return value


def classic_round(number: Any, ndigits: int = 0) -> float:
    """Rounds to a float; a number halfway between two is rounded away from zero."""
    value = float(number)
    if not math.isfinite(value):
        return value
    unit, context = decimal.Decimal(1).scaleb(-ndigits), decimal.Context(prec=_DIGITS)
    return float(decimal.Decimal(value).quantize(unit, decimal.ROUND_HALF_UP, context))


def _is_whole(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(np.issubdtype(value.dtype, np.integer))
    is_tensor = getattr(getattr(value, "dtype", None), "is_integer", False)
    return isinstance(value, (int, np.integer)) or bool(is_tensor)


def _execfile(path: str, names: dict[str, Any] | None = None) -> None:
    from compat.scripts.reading import conversion

    for part in conversion.read(path):
        # Replaces Python 2's `execfile`, for files of the script.
        exec(part.code(), sys._getframe(1).f_globals if names is None else names)  # noqa: S102


def classic_reload(module: Any) -> Any:
    """Reloads a module of the script; a view of a package is returned as it is."""
    is_view = sys.modules.get(module.__name__) is not module
    return module if is_view else importlib.reload(module)


BUILTINS: dict[str, Any] = {
    DECODE: classic_decode,
    DIVISION: classic_division,
    "basestring": str,
    "cmp": lambda left, right: int(left > right) - int(left < right),
    "execfile": _execfile,
    "file": open,
    "intern": sys.intern,
    "long": int,
    "raw_input": builtins.input,
    "reduce": functools.reduce,
    "reload": classic_reload,
    "round": classic_round,
    "unichr": chr,
    "unicode": str,
    "xrange": range,
}


def _pickle() -> types.ModuleType:
    """Returns a `pickle` module that reads files of Python 2, for example pickled arrays."""
    module = types.ModuleType("pickle", pickle.__doc__)
    module.__dict__.update({k: v for k, v in vars(pickle).items() if not k.startswith("__")})
    module.load = functools.partial(pickle.load, encoding="latin1")  # type: ignore[attr-defined]
    module.loads = functools.partial(pickle.loads, encoding="latin1")  # type: ignore[attr-defined]
    return module


PICKLE = _pickle()
