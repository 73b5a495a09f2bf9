"""Several writers that are used as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping

from compat.tracking.interface import FINISHED, Param, Writer

if TYPE_CHECKING:
    import numpy as np


class MultiWriter(Writer):
    """Forwards every call to each of its writers, in their order."""

    def __init__(self, *writers: Writer) -> None:
        self._writers = writers

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """See `Writer.scalars`."""
        for writer in self._writers:
            writer.scalars(step, values)

    def histograms(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """See `Writer.histograms`."""
        for writer in self._writers:
            writer.histograms(step, values)

    def images(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """See `Writer.images`."""
        for writer in self._writers:
            writer.images(step, values)

    def graph(self, graph_def: bytes) -> None:
        """See `Writer.graph`."""
        for writer in self._writers:
            writer.graph(graph_def)

    def params(self, values: Mapping[str, Param]) -> None:
        """See `Writer.params`."""
        for writer in self._writers:
            writer.params(values)

    def tags(self, values: Mapping[str, str]) -> None:
        """See `Writer.tags`."""
        for writer in self._writers:
            writer.tags(values)

    def artifact(self, path: str, folder: str = "") -> None:
        """See `Writer.artifact`."""
        for writer in self._writers:
            writer.artifact(path, folder)

    def close(self, status: str = FINISHED) -> None:
        """Closes every writer, also when one raises.

        Raises:
          Exception: What the first of those that failed raised, once all were asked to close.
        """
        failures = []
        for writer in self._writers:
            try:
                writer.close(status)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
