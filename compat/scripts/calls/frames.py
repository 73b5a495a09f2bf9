"""Functions and methods of pandas as they were until 0.25, for scripts."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any, Callable

import numpy as np


def _pandas() -> Any:
    return importlib.import_module("pandas")


def get_dummies(data: Any, *args: Any, **options: Any) -> Any:
    """Returns indicators as uint8, as until 1.5, not as bool."""
    options.setdefault("dtype", np.uint8)
    return _pandas().get_dummies(data, *args, **options)


def read_csv(filepath_or_buffer: Any, sep: Any = ",", *args: Any, **options: Any) -> Any:
    """Reads a file of comma-separated values; accepts options that are gone."""
    return _read(filepath_or_buffer, sep, *args, **options)


def read_table(filepath_or_buffer: Any, sep: Any = "\t", *args: Any, **options: Any) -> Any:
    """Reads a file of values separated by tabs; accepts options that are gone."""
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
    frame = _pandas().read_csv(file, sep=delimiter or sep, header=header, **options)
    if prefix is not None and header is None and options.get("names") is None:
        frame.columns = [f"{prefix}{column}" for column in frame.columns]
    return frame.squeeze("columns") if squeeze and hasattr(frame, "squeeze") else frame


def value_counts(values: Any, *args: Any, **options: Any) -> Any:
    """Returns how often each value occurs."""
    return _pandas().Series(values).value_counts(*args, **options)


def __getattr__(name: str) -> Callable[..., Any]:
    """Returns a function such as `rolling_mean(arg, window)` or `expanding_max(arg)`."""
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


class _Positions:
    """`frame.ix`: labels first; integers are positions unless the index holds integers."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getitem__(self, key: Any) -> Any:
        return self._owner.loc[self._labels(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._owner.loc[self._labels(key)] = value

    def _labels(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return self._axis(self._owner.index, key)
        axes = [self._owner.index, getattr(self._owner, "columns", None)]
        return tuple(self._axis(axis, part) for axis, part in zip(axes, key))

    def _axis(self, index: Any, key: Any) -> Any:
        if index is None or _pandas().api.types.is_integer_dtype(index.dtype):
            return key
        if isinstance(key, slice):
            ends = (key.start, key.stop)
            if all(end is None or isinstance(end, (int, np.integer)) for end in ends):
                return index[key]
            return key
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return index[key]
        is_list = isinstance(key, list) and key and all(type(part) is int for part in key)
        return index[key] if is_list else key


def _append(self: Any, other: Any, ignore_index: bool = False, **options: Any) -> Any:
    pandas = _pandas()
    if isinstance(other, dict):
        other = pandas.Series(other)
    if isinstance(other, list):
        parts = [self, *other]
    elif self.ndim == 2 and isinstance(other, pandas.Series):
        parts = [self, other.to_frame().T.infer_objects()]
    else:
        parts = [self, other]
    return pandas.concat(parts, ignore_index=ignore_index, **options)


def _sort(self: Any, columns: Any = None, axis: int = 0, ascending: Any = True, **more: Any) -> Any:
    if columns is None:
        return self.sort_index(axis=axis, ascending=ascending, **more)
    return self.sort_values(columns, axis=axis, ascending=ascending, **more)


def _set_value(self: Any, *args: Any, **options: Any) -> Any:
    *place, value = args
    del options
    self.at[tuple(place) if len(place) > 1 else place[0]] = value
    return self


def _from_csv(
    path: Any, header: Any = 0, sep: str = ",", index_col: Any = 0, parse_dates: bool = True
) -> Any:
    return _pandas().read_csv(path, header=header, sep=sep, index_col=index_col)


_METHODS: dict[str, Any] = {
    "append": _append,
    "as_matrix": lambda self, *columns: np.array((self[columns[0]] if columns else self).values),
    "get_value": lambda self, *place, **_: self.at[place if len(place) > 1 else place[0]],
    "iteritems": lambda self: self.items(),
    "ix": property(_Positions),
    "mad": lambda self, axis=0: (self - self.mean(axis=axis)).abs().mean(axis=axis),
    "set_value": _set_value,
}
_OF_FRAMES = {
    "applymap": lambda self, function, **options: self.map(function, **options),
    "from_csv": staticmethod(_from_csv),
    "sort": _sort,
}
_OF_SERIES = {
    "get_values": lambda self: np.array(self.values),
    "nonzero": lambda self: self.to_numpy().nonzero(),
    "order": lambda self, **options: self.sort_values(**options),
    "ptp": lambda self: self.max() - self.min(),
    "ravel": lambda self, *order: np.array(self.values).ravel(*order),
    "reshape": lambda self, *shape, **options: np.array(self.values).reshape(*shape, **options),
}


def install() -> None:
    """Adds the methods that are gone, in this process; texts are objects, as until 2.3."""
    pandas = _pandas()
    for owner, methods in (
        (pandas.DataFrame, {**_METHODS, **_OF_FRAMES}),
        (pandas.Series, {**_METHODS, **_OF_SERIES}),
    ):
        for name, method in methods.items():
            if not hasattr(owner, name):
                setattr(owner, name, method)
    # pandas.errors.OptionError before pandas 2.1.
    with contextlib.suppress(KeyError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 4 removes the option.
        pandas.set_option("future.infer_string", False)
