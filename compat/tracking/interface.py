"""What a training may say about itself, whoever listens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Union

if TYPE_CHECKING:
    import numpy as np

Param = Union[bool, int, float, str]

FINISHED = "FINISHED"
FAILED = "FAILED"
KILLED = "KILLED"
STATUSES = (FINISHED, FAILED, KILLED)


class Writer:
    """Takes note of a training; this base class takes none, and is what non-chiefs are given.

    Only the chief of a training holds a writer that writes, so that no loop asks who it is.
    """

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Records `values` at global step `step`; per name, steps strictly increase."""

    def histograms(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """Records the distribution of each array, of any shape, at global step `step`."""

    def images(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """Records images: each value is uint8 `[k, h, w, c]` with c = 1, 3 or 4."""

    def graph(self, graph_def: bytes) -> None:
        """Records a serialized `GraphDef`."""

    def params(self, values: Mapping[str, Param]) -> None:
        """Records the settings of the run; called once a process, before the first scalar."""

    def tags(self, values: Mapping[str, str]) -> None:
        """Records what describes the run but is no setting of it, e.g. a release or a host."""

    def artifact(self, path: str, folder: str = "") -> None:
        """Keeps a copy of the file or folder `path`, below `folder` among the run's artifacts.

        The copy is made in the background: `path` must stay as it is until `close` returns. It has
        to lie in the log folder; what lies elsewhere is given up.
        """

    def close(self, status: str = FINISHED) -> None:
        """Ends the run as FINISHED, FAILED or KILLED; the writer is of no use afterwards."""
