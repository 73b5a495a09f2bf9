"""Functions of pandas as they were until 0.25, for scripts."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from compat.scripts.shims.frame_methods import loaded, with_frequency
from compat.scripts.view import libraries


def get_dummies(data: Any, *args: Any, **options: Any) -> Any:
    """Returns indicators as uint8, as until 1.5, instead of bool."""
    options.setdefault("dtype", np.uint8)
    return loaded().get_dummies(data, *args, **options)


def read_csv(filepath_or_buffer: Any, sep: Any = ",", *args: Any, **options: Any) -> Any:
    """Reads a file of comma-separated values; accepts options that pandas removed."""
    return _read(filepath_or_buffer, sep, *args, **options)


def read_table(filepath_or_buffer: Any, sep: Any = "\t", *args: Any, **options: Any) -> Any:
    """Reads a file of tab-separated values; accepts options that pandas removed."""
    return _read(filepath_or_buffer, sep, *args, **options)


def _read(file: Any, sep: Any, delimiter: Any = None, header: Any = "infer", **options: Any) -> Any:
    squeeze, prefix = options.pop("squeeze", False), options.pop("prefix", None)
    for name in ("mangle_dupe_cols", "tupleize_cols", "infer_datetime_format", "compact_ints"):
        options.pop(name, None)
    if "skip_footer" in options:
        options["skipfooter"] = options.pop("skip_footer")
    if options.pop("delim_whitespace", False):
        sep = r"\s+"
    skips = not options.pop("error_bad_lines", True)
    warns = options.pop("warn_bad_lines", True)
    if skips:
        options["on_bad_lines"] = "warn" if warns else "skip"
    frame = loaded().read_csv(file, sep=delimiter or sep, header=header, **options)
    if prefix is not None and header is None and options.get("names") is None:
        frame.columns = [f"{prefix}{column}" for column in frame.columns]
    return frame.squeeze("columns") if squeeze and hasattr(frame, "squeeze") else frame


def concat(objs: Any, axis: Any = 0, join: str = "outer", **options: Any) -> Any:
    """Joins frames; accepts `join_axes`, the labels of the other axis."""
    axes = options.pop("join_axes", None)
    joined = loaded().concat(objs, axis=axis, join=join, **options)
    if axes is None:
        return joined
    return joined.reindex(**{"index" if axis in (1, "columns") else "columns": axes[0]})


def date_range(
    start: Any = None, end: Any = None, periods: Any = None, freq: Any = "D", **options: Any
) -> Any:
    """Returns dates; accepts `closed` and old names of frequencies."""
    call = libraries.with_arguments(loaded().date_range, {"closed": "inclusive"})
    return with_frequency(lambda freq: call(start, end, periods, freq, **options), freq)


def value_counts(values: Any, *args: Any, **options: Any) -> Any:
    """Returns the number of times that each value occurs."""
    return loaded().Series(values).value_counts(*args, **options)


def __getattr__(name: str) -> Callable[..., Any]:
    """Returns a function such as `rolling_mean(arg, window)`, `expanding_max(arg)` or `ewma`."""
    if name.startswith("ewm"):
        of = {"ewma": "mean", "ewmstd": "std", "ewmvar": "var"}[name]
        names = ("com", "span", "halflife", "alpha", "min_periods")

        def weighted(arg: Any, *args: Any, **options: Any) -> Any:
            return getattr(arg.ewm(**dict(zip(names, args), **options)), of)()

        return weighted
    kind, _, function = name.partition("_")
    if kind not in ("rolling", "expanding"):
        raise AttributeError(name)

    def call(arg: Any, *args: Any, min_periods: Any = None, **options: Any) -> Any:
        if kind == "rolling":
            window = options.pop("window", None) or args[0]
            center = options.pop("center", False)
            windows = arg.rolling(window, min_periods=min_periods, center=center)
        else:
            windows = arg.expanding(min_periods or 1)
        return getattr(windows, function)(**options)

    return call
