"""The interface of all objects that record a run, and a writer that combines several writers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Collection, Mapping, Sequence, Union

if TYPE_CHECKING:
    import numpy as np

Param = Union[bool, int, float, str]

FINISHED = "FINISHED"
FAILED = "FAILED"
KILLED = "KILLED"


class Writer:
    """Records a run. This base class records nothing; tasks other than the chief use it.

    For each name, the steps of scalars, histograms, images, texts, figures and curves strictly
    increase.
    """

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Records `values` at global step `step`."""

    def histograms(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """Records the distribution of each array, of any shape, at global step `step`."""

    def images(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """Records images: each value is uint8 `[k, h, w, c]` with c = 1, 3 or 4."""

    def texts(self, step: int, values: Mapping[str, str]) -> None:
        """Records texts in Markdown."""

    def figures(self, step: int, values: Mapping[str, Any]) -> None:
        """Records each `matplotlib.figure.Figure` as an image."""

    def pr_curves(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """Records precision-recall curves, each float64 `[6, n]`, at n thresholds from 0 to 1.

        The rows are true positives, false positives, true negatives, false negatives, precision
        and recall. The thresholds are evenly spaced, 0 and 1 included.
        """

    def embedding(
        self,
        name: str,
        vectors: np.ndarray,
        labels: Sequence[str] | None = None,
        images: np.ndarray | None = None,
    ) -> None:
        """Records points for the projector; they replace earlier points of the same name.

        Args:
          name: The name of the embedding.
          vectors: Numbers `[n, width]` with a width above 1; only the first 10,000 are recorded.
          labels: A text for each vector.
          images: A picture for each vector, uint8 `[n, h, w, c]` with c = 1, 3 or 4.
        """

    def summary(self, step: int, serialized: bytes) -> None:
        """Records a serialized `Summary`, as TensorFlow's summary operations return it."""

    def graph(self, graph_def: bytes) -> None:
        """Records a serialized `GraphDef`."""

    def charts(self, curves: Mapping[str, Collection[str]]) -> None:
        """Records charts of several scalars each; `curves` maps a chart's name to its scalars."""

    def params(self, values: Mapping[str, Param], tuned: Collection[str] | None = None) -> None:
        """Records the settings of the run; called once per process, before the first scalar.

        Args:
          values: The settings.
          tuned: The names of the settings by which runs are compared, as in the columns of
            TensorBoard's HPARAMS tab; all by default.
        """

    def tags(self, values: Mapping[str, str]) -> None:
        """Records facts about the run that are not settings, for example a release or a host."""

    def dataset(self, name: str, checksum: str, source: str, sizes: Mapping[str, int]) -> None:
        """Records the data set that the run is trained and evaluated on.

        Args:
          name: The name of the data set.
          checksum: The checksum of the data, in hex; "" for a stream.
          source: The origin of the data.
          sizes: Number of examples by split.
        """

    def artifact(self, path: str, folder: str = "") -> None:
        """Copies the file or folder `path`, which is in the log folder, to the run's artifacts.

        The copy is made in the background: `path` must not change until `close` returns.

        Args:
          path: The file or folder, which must be in the log folder.
          folder: The folder among the run's artifacts.
        """

    def close(self, status: str = FINISHED) -> None:
        """Ends the run as FINISHED, FAILED or KILLED; the writer cannot be used afterwards."""


class MultiWriter(Writer):
    """Forwards every call to each of its writers, in their order."""

    def __init__(self, *writers: Writer) -> None:
        self._writers = writers

    def close(self, status: str = FINISHED) -> None:
        """Closes every writer, even if one raises.

        Raises:
          Exception: The first error of a writer, after all writers were closed.
        """
        failures = []
        for writer in self._writers:
            try:
                writer.close(status)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]


def _forwarded(method: Any) -> Any:
    """Returns the method of `MultiWriter` that calls `method` of each of its writers."""

    @functools.wraps(method)
    def forward(self: MultiWriter, *args: Any, **kwargs: Any) -> None:
        for writer in self._writers:
            getattr(writer, method.__name__)(*args, **kwargs)

    return forward


for _name, _method in vars(Writer).items():
    if not _name.startswith("_") and _name not in vars(MultiWriter):
        setattr(MultiWriter, _name, _forwarded(_method))
