"""Provides operations on pandas DataFrames that pandas 3 refuses, or applies to a copy."""

from __future__ import annotations

from typing import Any

from numpy import array, ndarray

from compat.scripts.reading.frames import COLUMN, VALUES


class _Column:
    """A column of a frame; changes in place are stored in the frame, as before pandas 3."""

    def __init__(self, frame: Any, name: Any) -> None:
        self._frame, self._name = frame, name

    def __getitem__(self, rows: Any) -> Any:
        return self._frame[self._name][rows]

    def __setitem__(self, rows: Any, value: Any) -> None:
        column = self._frame[self._name].copy()
        column[rows] = value
        self._frame[self._name] = column

    def __getattr__(self, method: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> None:
            column = self._frame[self._name].copy()
            getattr(column, method)(*args, **kwargs)
            self._frame[self._name] = column

        return call


class _Values:
    """The values of a frame, a series or a column; assigning to elements changes the owner."""

    def __init__(self, owner: Any, name: Any = None) -> None:
        self._owner, self._name = owner, name

    def _now(self) -> Any:
        return self._owner if self._name is None else self._owner[self._name]

    def __getitem__(self, places: Any) -> Any:
        return self._now().values[places]

    def __setitem__(self, places: Any, value: Any) -> None:
        now = self._now()
        values = array(now.values)
        values[places] = value
        if self._name is not None:
            self._owner[self._name] = values
        # With several types, the values were a copy in old releases, too.
        elif now.ndim == 1 or now.dtypes.nunique() == 1:
            now.iloc[:] = values


def classic_column(owner: Any, key: Any, is_attribute: bool = False) -> Any:
    """Returns `owner[key]`, or the attribute `key`; a column of a frame as a `_Column`."""
    is_of_pandas = type(owner).__module__.partition(".")[0] == "pandas"
    if is_attribute and key == "values":
        if isinstance(owner, _Column):
            return _Values(owner._frame, owner._name)
        if is_of_pandas and hasattr(owner, "iloc"):
            return _Values(owner)
    if is_of_pandas and hasattr(owner, "columns"):
        names = owner.columns
        if isinstance(key, (str, int)) and key in names and names.is_unique:
            return _Column(owner, key)
    return getattr(owner, key) if is_attribute else owner[key]


def classic_values(values: Any) -> Any:
    """Returns the value of an attribute `values`; a copy if pandas made it read-only."""
    if isinstance(values, ndarray) and not values.flags.writeable:
        return values.copy()
    return values


BUILTINS = {COLUMN: classic_column, VALUES: classic_values}
