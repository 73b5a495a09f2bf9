"""Functions of SciPy as they were until 1.2, for scripts."""

from __future__ import annotations

import importlib
import types
from typing import Any, Callable

import numpy as np


def _scipy(module: str) -> Any:
    return importlib.import_module(f"scipy.{module}")


class _Fft(types.ModuleType):
    """The module `scipy.fft`, which can also be called as the function of old releases."""

    def __call__(self, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return np.fft.fft(a, n, axis, norm)

    def __getattr__(self, name: str) -> Any:
        return getattr(_scipy("fft"), name)


fft = _Fft("scipy.fft")


def central_diff_weights(Np: int, ndiv: int = 1) -> Any:
    """Returns the weights of a central derivative over an odd number of points."""
    if Np < ndiv + 1:
        raise ValueError("Number of points must be at least the derivative order + 1.")
    if Np % 2 == 0:
        raise ValueError("The number of points must be odd.")
    places = np.vander(np.arange(Np) - float(Np // 2), increasing=True)
    return np.prod(np.arange(1, ndiv + 1)) * np.linalg.inv(places)[ndiv]


def derivative(
    func: Callable[..., Any], x0: Any, dx: float = 1.0, n: int = 1, args: Any = (), order: int = 3
) -> Any:
    """Returns the n-th derivative of a function, from `order` points at distances of `dx`."""
    weights = central_diff_weights(order, n)
    values = [weights[i] * func(x0 + (i - order // 2) * dx, *args) for i in range(order)]
    return sum(values) / dx**n


def itemfreq(a: Any) -> Any:
    """Returns the sorted values of an array and the number of each, in two columns."""
    return np.array(np.unique(a, return_counts=True)).T


def median_absolute_deviation(
    x: Any, axis: Any = 0, center: Any = np.median, **options: Any
) -> Any:
    """Returns the median distance from the median; by default multiplied by 1.4826."""
    scale = options.pop("scale", 1.4826)
    return scale * _scipy("stats").median_abs_deviation(x, axis, center, **options)


def ricker(points: int, a: float) -> Any:
    """Returns a Ricker wavelet, the "Mexican hat", of width `a`."""
    square = (np.arange(points) - (points - 1.0) / 2) ** 2 / a**2
    return 2 / (np.sqrt(3 * a) * np.pi**0.25) * (1 - square) * np.exp(-square / 2)


def morlet(M: int, w: float = 5.0, s: float = 1.0, complete: bool = True) -> Any:
    """Returns a complex Morlet wavelet of M points."""
    x = np.linspace(-s * 2 * np.pi, s * 2 * np.pi, int(M))
    wave = np.exp(1j * w * x) - (np.exp(-0.5 * w**2) if complete else 0)
    return wave * np.exp(-0.5 * x**2) * np.pi**-0.25


def cwt(data: Any, wavelet: Callable[..., Any], widths: Any) -> Any:
    """Returns the wavelet transform of data, float64 `[widths, data]`."""
    transform = np.zeros([len(widths), len(data)])
    for row, width in zip(transform, widths):
        wave = wavelet(min(10 * width, len(data)), width)
        row[:] = _scipy("signal").convolve(data, wave, mode="same")
    return transform


class interp2d:
    """A spline through the points of a grid, or through scattered points.

    Args:
      x: Coordinates of the columns, or of each point.
      y: Coordinates of the rows, or of each point.
      z: Values `[y, x]`; may be flat.
      kind: "linear", "cubic" or "quintic".
      copy: Has no effect.
      bounds_error: Whether points outside of the grid raise a ValueError.
      fill_value: The value of points outside; None for the value of the nearest point inside.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        kind: str = "linear",
        copy: bool = True,
        bounds_error: bool = False,
        fill_value: Any = None,
    ) -> None:
        del copy
        x, y, z = np.ravel(x), np.ravel(y), np.asarray(z)
        self.bounds_error, self.fill_value = bounds_error, fill_value
        self.x_min, self.x_max = np.amin(x), np.amax(x)
        self.y_min, self.y_max = np.amin(y), np.amax(y)
        degree = {"linear": 1, "cubic": 3, "quintic": 5}[kind]
        interpolate = _scipy("interpolate")
        if z.size == len(x) * len(y):
            columns, rows = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
            grid = z.reshape(len(y), len(x))[rows][:, columns].T
            spline_class = interpolate.RectBivariateSpline
            self._spline = spline_class(x[columns], y[rows], grid, kx=degree, ky=degree, s=0)
        else:
            knots = interpolate.bisplrep(x, y, z.ravel(), kx=degree, ky=degree, s=0.0)
            self._spline = lambda x, y, **of: np.atleast_2d(interpolate.bisplev(x, y, knots, **of))

    def __call__(
        self, x: Any, y: Any, dx: int = 0, dy: int = 0, assume_sorted: bool = False
    ) -> Any:
        x, y = np.atleast_1d(x), np.atleast_1d(y)
        if not assume_sorted:
            x, y = np.sort(x), np.sort(y)
        outside_x = (x < self.x_min) | (x > self.x_max)
        outside_y = (y < self.y_min) | (y > self.y_max)
        if self.bounds_error and (outside_x.any() or outside_y.any()):
            raise ValueError(
                f"Values out of range; x must be in {(self.x_min, self.x_max)}, y in "
                f"{(self.y_min, self.y_max)}"
            )
        values = np.asarray(self._spline(x, y, dx=dx, dy=dy)).reshape(len(x), len(y)).T
        if self.fill_value is not None:
            values[:, outside_x] = self.fill_value
            values[outside_y, :] = self.fill_value
        return values[0] if len(values) == 1 else values
