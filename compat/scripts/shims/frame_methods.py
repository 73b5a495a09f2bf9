"""Methods of pandas as they were until 0.25, which `install` adds to its classes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import warnings
from typing import Any, Callable, Iterator

import numpy as np

from compat.scripts.view import libraries


def loaded() -> Any:
    """Imports pandas, which is optional for a script, and returns it."""
    return importlib.import_module("pandas")


# Frequencies that were renamed in pandas 2.2.
_FREQUENCIES = {"A": "YE", "BM": "BME", "H": "h", "M": "ME", "Q": "QE", "S": "s", "T": "min"}


def _frequency(text: Any) -> Any:
    match = re.fullmatch(r"(-?\d*)([A-Z]+)", text) if isinstance(text, str) else None
    return match[1] + _FREQUENCIES.get(match[2], match[2]) if match else text


def with_frequency(call: Callable[[Any], Any], frequency: Any) -> Any:
    """Calls a function with the old or the new name of a frequency; returns its result."""
    try:
        return call(frequency)
    except ValueError:
        return call(_frequency(frequency))


class _Positions:
    """`frame.ix`: selects by label; integers are positions unless the index holds integers."""

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
        if index is None or loaded().api.types.is_integer_dtype(index.dtype):
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
    pandas = loaded()
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
    return loaded().read_csv(path, header=header, sep=sep, index_col=index_col)


def _fillna(today: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(today)
    def fillna(
        self: Any, value: Any = None, method: Any = None, axis: Any = None, **more: Any
    ) -> Any:
        if method is None:
            more.update({} if axis is None else {"axis": axis})
            return today(self, value, **more)
        return getattr(self, {"pad": "ffill", "backfill": "bfill"}.get(method, method))(
            axis=axis, **more
        )

    return fillna


def _inferred(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that infers better types for columns of objects, as until pandas 2."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        result = method(self, *args, **options)
        if result is None or result is self:  # The method changed the frame in place.
            self._update_inplace(self.infer_objects())
            return result
        return result.infer_objects()

    return call


def _of_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that skips columns without numbers, as pandas did until 1.5."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return method(self, *args, **options)
        except (TypeError, ValueError):
            if "numeric_only" in options:
                raise
            return method(self, *args, numeric_only=True, **options)

    return call


def _resample(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def resample(self: Any, rule: Any, how: Any = None, **options: Any) -> Any:
        result = with_frequency(lambda rule: method(self, rule, **options), rule)
        return result if how is None else result.agg(how)

    return resample


def _select(method: Callable[..., Any] | None) -> Callable[..., Any]:
    def select(self: Any, crit: Any, *args: Any, axis: Any = 0, **options: Any) -> Any:
        """Returns the rows, or columns, whose labels satisfy a function."""
        # pandas 3.1 has a method of this name, which selects columns by name.
        if not callable(crit) and method is not None:
            return method(self, crit, *args, **options)
        axis = args[0] if args else axis
        labels = self.axes[1 if axis in (1, "columns") else 0]
        return self.reindex([label for label in labels if crit(label)], axis=axis)

    return select


def _week(self: Any) -> Any:
    """Returns the week numbers of dates, or of a column of dates."""
    return self.isocalendar().week.astype("int64")


def _rename_axis(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def rename_axis(self: Any, mapper: Any = None, *args: Any, **options: Any) -> Any:
        if isinstance(mapper, dict):
            return self.rename(mapper, *args, **options)
        return method(self, mapper, *args, **options)

    return rename_axis


def _to_numbers(self: Any, **options: Any) -> Any:
    """`convert_objects`: converts columns of strings that are numbers to numbers."""
    del options
    if self.ndim == 2:
        return self.apply(_to_numbers)
    try:
        return loaded().to_numeric(self)
    except (TypeError, ValueError):
        return self


_METHODS: dict[str, Any] = {
    "append": _append,
    "as_matrix": lambda self, columns=None: np.array(
        (self if columns is None else self[columns]).values
    ),
    "clip_lower": lambda self, threshold, **options: self.clip(lower=threshold, **options),
    "clip_upper": lambda self, threshold, **options: self.clip(upper=threshold, **options),
    "convert_objects": _to_numbers,
    "ftypes": property(lambda self: self.dtypes),
    "get_value": lambda self, *place, **_: self.at[place if len(place) > 1 else place[0]],
    "iteritems": lambda self: self.items(),
    "ix": property(_Positions),
    "mad": lambda self, axis=0: (self - self.mean(axis=axis)).abs().mean(axis=axis),
    "reindex_axis": lambda self, labels, axis=0, **options: self.reindex(labels, axis=axis),
    "set_value": _set_value,
    "to_dense": lambda self: self,
}
_OF_FRAMES = {
    "applymap": lambda self, function, **options: self.map(function, **options),
    "from_csv": staticmethod(_from_csv),
    "from_items": staticmethod(lambda items, **options: loaded().DataFrame(dict(items))),
    "lookup": lambda self, rows, columns: (
        loaded().Series([self.at[place] for place in zip(rows, columns)]).to_numpy()
    ),
    "sort": _sort,
}
_OF_SERIES = {
    "get_values": lambda self: np.array(self.values),
    "nonzero": lambda self: self.to_numpy().nonzero(),
    "order": lambda self, **options: self.sort_values(**options),
    "ptp": lambda self: self.max() - self.min(),
    "ravel": lambda self, *order: np.array(self.values).ravel(*order),
    "sort": lambda self, **options: self.sort_values(inplace=True, **options),
    "reshape": lambda self, *shape, **options: np.array(self.values).reshape(*shape, **options),
}


# Arguments that are keyword-only since 2.0, in their order; and renamed arguments.
_POSITIONS = {
    "clip": "self lower upper axis",
    "drop": "self labels axis",
    "drop_duplicates": "self subset keep inplace",
    "dropna": "self axis how thresh subset inplace",
    "pivot": "self index columns values",
    "reset_index": "self level drop inplace",
    "set_index": "self keys drop append inplace",
    "sort_index": "self axis level ascending inplace",
    "sort_values": "self by axis ascending inplace",
}
_RENAMED = {
    "to_csv": {"line_terminator": "lineterminator"},
    "to_records": {"convert_datetime64": ""},
}
_INFERRED = "bfill ffill mask replace where"
_OF_NUMBERS = "corr cov kurt mean median sem skew std var"


def _changed(owner: Any, is_frame: bool) -> Iterator[tuple[str, Any]]:
    """Yields the name of each method that has changed, and a method that also works as before."""
    for name, order in _POSITIONS.items() if is_frame else ():
        yield name, libraries.with_arguments(getattr(owner, name), {}, order)
    for name, renamed in _RENAMED.items():
        if hasattr(owner, name):
            yield name, libraries.with_arguments(getattr(owner, name), renamed)
    for name in _OF_NUMBERS.split() if is_frame else ():
        yield name, _of_numbers(getattr(owner, name))
    methods: list[tuple[str, Any]] = [("rename_axis", _rename_axis), ("resample", _resample)]
    methods += [(name, _inferred) for name in _INFERRED.split()]
    yield "select", _select(getattr(owner, "select", None))
    # Before pandas 3 `fillna` accepts a method, and `ffill` calls it with one.
    if "method" not in inspect.signature(owner.fillna).parameters:
        methods.append(("fillna", lambda method: _inferred(_fillna(method))))
    for name, make in methods:
        yield name, make(getattr(owner, name))


def install() -> None:
    """Adds the methods that pandas removed, in this process; strings are objects, as until 2.3."""
    pandas = loaded()
    for owner, methods in (
        (pandas.DataFrame, {**_METHODS, **_OF_FRAMES}),
        (pandas.Series, {**_METHODS, **_OF_SERIES}),
    ):
        for name, method in methods.items():
            if not hasattr(owner, name):
                setattr(owner, name, method)
        for name, method in [*_changed(owner, owner is pandas.DataFrame)]:
            setattr(owner, name, method)
    accessors = importlib.import_module("pandas.core.indexes.accessors")
    of_index = property(lambda self: pandas.Index(_week(self).to_numpy()))
    for owner, week in (
        (pandas.DatetimeIndex, of_index),
        (accessors.DatetimeProperties, property(_week)),
    ):
        for name in ("week", "weekofyear"):
            if not hasattr(owner, name):
                setattr(owner, name, week)
    groups = importlib.import_module("pandas.core.groupby").DataFrameGroupBy
    for name in ("mean", "median", "sem", "std", "var"):
        setattr(groups, name, _of_numbers(getattr(groups, name)))
    # This was pandas.errors.OptionError before pandas 2.1.
    with contextlib.suppress(KeyError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 4 removes the option.
        pandas.set_option("future.infer_string", False)
