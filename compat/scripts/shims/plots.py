"""Functions of Matplotlib as they were until 2.2, for scripts."""

from __future__ import annotations

import functools
import importlib
import logging
from typing import Any, Callable

import numpy as np

from compat.scripts.view import libraries

_SEABORN = "seaborn-v0_8"


def use(backend: str, *args: Any, **kwargs: Any) -> None:
    """Selects a backend; Agg, which draws into files, replaces a backend that is missing."""
    matplotlib: Any = importlib.import_module("matplotlib")
    try:
        matplotlib.use(backend, **{k: v for k, v in kwargs.items() if k == "force"})
    except (ImportError, ValueError) as error:
        logging.getLogger(__name__).warning("backend Agg in place of %s: %s", backend, error)
        matplotlib.use("agg")


def hold(b: Any = None) -> None:
    """Does nothing: plots are added to the figure, as by default in old releases."""


def ishold() -> bool:
    """Returns whether a plot is added to the figure."""
    return True


def normpdf(x: Any, *args: Any) -> Any:
    """Returns the density of the normal distribution with a mean and a standard deviation."""
    mean, deviation = args
    scaled = (np.asarray(x) - mean) / deviation
    return np.exp(-0.5 * scaled**2) / (deviation * np.sqrt(2 * np.pi))


def bivariate_normal(
    X: Any, Y: Any, sigmax: float = 1.0, sigmay: float = 1.0, mux: float = 0.0, muy: float = 0.0
) -> Any:
    """Returns the density of two independent normal distributions."""
    return normpdf(X, mux, sigmax) * normpdf(Y, muy, sigmay)


def _current(gca: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(gca)
    def current(self: Any, **options: Any) -> Any:
        """Returns the axes in use or, with options such as `projection="3d"`, new ones."""
        return self.add_subplot(**options) if options else gca(self)

    return current


def install() -> None:
    """Adds the old names of styles, and methods that Matplotlib removed, in this process."""
    style: Any = importlib.import_module("matplotlib.style")
    for name in [name for name in style.library if name.startswith(_SEABORN)]:
        style.library.setdefault(name.replace("-v0_8", ""), style.library[name])
    axes = importlib.import_module("matplotlib.axes").Axes
    canvas = importlib.import_module("matplotlib.backend_bases").FigureCanvasBase
    for owner, methods in (
        (axes, {"set_axis_bgcolor": axes.set_facecolor, "get_axis_bgcolor": axes.get_facecolor}),
        (axes, {"hold": lambda *args: None}),
        (axes, {"set_color_cycle": lambda self, colors: self.set_prop_cycle(color=colors)}),
        (canvas, {"set_window_title": lambda self, title: self.manager.set_window_title(title)}),
    ):
        for name, method in methods.items():
            if not hasattr(owner, name):
                setattr(owner, name, method)
    figure = importlib.import_module("matplotlib.figure").Figure
    figure.gca = _current(figure.gca)
    for owner, name, renamed in (
        (axes, "bar", {"left": "x"}),
        (axes, "hist", {"normed": "density"}),
        (figure, "add_subplot", {"axisbg": "facecolor"}),
    ):
        setattr(owner, name, libraries.with_arguments(getattr(owner, name), renamed))
