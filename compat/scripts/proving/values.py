"""Decides whether two numbers, or two arrays, are equal up to a tolerance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_MANY = 16  # In arrays of at least so many elements, a few may differ.


class Gap(NamedTuple):
    """The difference of two values.

    Attributes:
      error: The relative difference; for arrays, the norm of the difference, relative to the larger
        of both norms.
      tolerance: The values differ if `error` exceeds it.
      a: The value of A; for arrays, the element with the largest difference.
      b: The same of B.
      place: The index of this element in an array, "" for a number.
    """

    error: float
    tolerance: float
    a: float
    b: float
    place: str = ""

    @property
    def differs(self) -> bool:
        """Whether the difference exceeds the tolerance."""
        return not self.error <= self.tolerance

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        return (
            f"{self.a:.6g} and {self.b:.6g}{at}, relative difference {self.error:.2g}, "
            f"tolerance {self.tolerance:.2g}"
        )


def numbers(a: float, b: float, rtol: float, least: float = 0.0) -> Gap:
    """Compares two numbers; the error is relative to the largest of |a|, |b| and `least`."""
    if a == b or (np.isnan(a) and np.isnan(b)):
        return Gap(0.0, rtol, a, b)
    if not (np.isfinite(a) and np.isfinite(b)):
        return Gap(float("inf"), rtol, a, b)
    return Gap(abs(a - b) / max(abs(a), abs(b), least), rtol, a, b)


def tensors(a: Any, b: Any, rtol: float, noise: float = 0.0) -> Gap | None:
    """Compares two arrays by the norm of their difference; None if their shapes are different.

    Args:
      a: An array of A.
      b: An array of B.
      rtol: The relative tolerance.
      noise: The root mean square of the rounding errors in a difference.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return None
    if not a.size:
        return Gap(0.0, rtol, 0.0, 0.0)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return Gap(0.0, rtol, float(a.flat[0]), float(b.flat[0]))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b))
    apart = np.where(np.isnan(apart), np.inf, apart)
    index = np.unravel_index(int(np.argmax(apart)), a.shape)
    place = "[" + ", ".join(str(int(i)) for i in index) + "]" if a.ndim else ""
    values = float(a[index]), float(b[index])
    if not np.isfinite(apart[index]):
        return Gap(float("inf"), rtol, *values, place)
    size = max(rms(a), rms(b))
    distance = rms(apart)
    tolerance = max(rtol, noise / size) if size else rtol
    return Gap(distance / size if size else 0.0, tolerance, *values, place)


def few_differ(a: Any, b: Any, rtol: float) -> bool:
    """Returns whether at most one in a hundred of the elements differ, except those that are zero.

    Only elements that are not zero in `a` or `b` count. If these are few, the result is False.

    Args:
      a: An array.
      b: An array of the same shape.
      rtol: The tolerance, relative to the root mean square of these elements.
    """
    a, b = np.asarray(a), np.asarray(b)
    used = (a != 0) | (b != 0)
    a, b = a[used], b[used]
    if a.size < _MANY:
        return False
    off = ~(np.abs(a - b) <= rtol * max(rms(a), rms(b)))
    return int(off.sum()) <= -(-a.size // 100)


def rms(a: Any) -> float:
    """Returns the root mean square of an array's finite elements."""
    a = np.asarray(a, np.float64)
    a = a[np.isfinite(a)]
    if not a.size:
        return 0.0
    largest = float(np.max(np.abs(a)))
    return largest * float(np.sqrt(np.mean(np.square(a / largest)))) if largest else 0.0
