"""Gives curves unique names in MLflow, which accepts fewer characters than TensorBoard."""

from __future__ import annotations

import re
from typing import Iterable

# Maximum lengths of names of metrics, parameters and tags: the lowest limits of MLflow 1.30 to 3.
NAME_LENGTH = 250


def mlflow_name(name: str) -> str:
    """Returns a name that all releases of MLflow accept, which read names as relative paths.

    >>> mlflow_name("../loss: x/y")
    'loss_ x/y'
    """
    parts = (re.sub(r"[^\w.\- ]", "_", part) for part in name.split("/"))
    return "/".join(part for part in parts if part.strip("."))[:NAME_LENGTH].rstrip("/") or "_"


class CurveNames:
    """Gives each curve of a run a unique name, in the order in which the curves first appear.

    Args:
      earlier: The names of curves that the run already has, in that order.
    """

    def __init__(self, earlier: Iterable[str] = ()) -> None:
        self._given: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        for name in earlier:
            self.of(name)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def of(self, name: str) -> str:
        """Returns the name of a curve in MLflow, with a number if an earlier curve has the name."""
        if name not in self._given:
            candidate, number = mlflow_name(name), 1
            while candidate in self._owners:
                number += 1
                end = f"_{number}"
                candidate = mlflow_name(name)[: NAME_LENGTH - len(end)] + end
            self._given[name] = candidate
            self._owners[candidate] = name
        return self._given[name]

    def before(self, name: str) -> str | None:
        """Returns the earlier curve that has the MLflow name of this one, or None.

        >>> names = CurveNames(["a>b", "a_b"])
        >>> names.of("a_b"), names.before("a_b")
        ('a_b_2', 'a>b')
        """
        plain = mlflow_name(name)
        return None if self.of(name) == plain else self._owners[plain]
