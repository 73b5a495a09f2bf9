"""Writes TensorBoard's event files, without a summary operation or TensorFlow."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Callable, Collection, Container, Mapping, Sequence

from compat.errors import UserError, reason_of
from compat.tracking.files import lock, writing_to
from compat.tracking.redaction import redacted
from compat.tracking.tensorboard import projector, summaries
from compat.tracking.tensorboard.eventfile import EventFile, event_files, read_events, trim
from compat.tracking.writer import FINISHED, Param, Writer

if TYPE_CHECKING:
    import numpy as np
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary


class TensorBoard(Writer):
    """Writes one run folder, as its only writer.

    For each name, TensorBoard drops every earlier point whose step is not below the step of a new
    point. So the steps of a name must strictly increase, also over restarts: if a run resumes from
    a checkpoint of step S, points after S are removed first. A step that does not increase raises a
    `ValueError`.

    If the disk is full or the folder is removed, a line is logged, and writing stops.
    """

    def __init__(
        self,
        logdir: str,
        resume_step: int | None = None,
        say: Callable[[str], object] = print,
    ) -> None:
        """Opens the run folder.

        Args:
          logdir: The run folder, created if it does not exist.
          resume_step: The global step of the checkpoint from which the run resumes; None for a new
            run, whose folder must not contain events of another.
          say: Receives lines for the user.

        Raises:
          UserError: The folder cannot be written to, another process is writing to it, or it
            contains events and the run is new.
        """
        self._logdir = logdir
        self._say = say
        self._last_steps: dict[str, int] = {}
        self._has_graph = False
        self._has_params = False
        self._file: EventFile | None = None
        with writing_to(logdir):
            self._lock = lock(
                os.path.join(logdir, "tensorboard.lock"),
                f"log folder {logdir!r} is being written by another process; expected one"
                " TensorBoard writer a folder; end that process or give another folder",
            )
            try:
                self._read_earlier(resume_step)
                self._file = EventFile(logdir)
            except BaseException:
                self._lock.close()
                raise

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        points = [Summary.Value(tag=tag, simple_value=float(v)) for tag, v in values.items()]
        self._add(step, Summary(value=points))

    def histograms(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """See `Writer.histograms`; values that are not finite are skipped."""
        import numpy as np
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb

        self._add(step, *(histogram_pb(tag, v[np.isfinite(v)]) for tag, v in values.items()))

    def images(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """See `Writer.images`; raises a `ValueError` for arrays of another shape or type."""
        self._add(step, *(summaries.image_summary(tag, value) for tag, value in values.items()))

    def texts(self, step: int, values: Mapping[str, str]) -> None:
        from tensorboard.plugins.text.summary_v2 import text_pb

        self._add(step, *(text_pb(tag, value) for tag, value in values.items()))

    def figures(self, step: int, values: Mapping[str, Any]) -> None:
        self.images(step, {tag: summaries.figure_image(figure) for tag, figure in values.items()})

    def pr_curves(self, step: int, values: Mapping[str, np.ndarray]) -> None:
        """See `Writer.pr_curves`; raises a `ValueError` for arrays of another shape."""
        self._add(step, *(summaries.pr_curve_summary(tag, value) for tag, value in values.items()))

    def embedding(
        self,
        name: str,
        vectors: np.ndarray,
        labels: Sequence[str] | None = None,
        images: np.ndarray | None = None,
    ) -> None:
        """See `Writer.embedding`; raises a `ValueError` for arrays of another shape or length."""
        if self._file:
            try:
                projector.write(self._logdir, name, vectors, labels, images)
            except OSError as error:
                self._give_up(error)

    def summary(self, step: int, serialized: bytes) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        self._add(step, Summary.FromString(serialized))

    def graph(self, graph_def: bytes) -> None:
        """Records the graph, unless the folder has one: TensorBoard warns about a second one."""
        if not self._has_graph:
            self._has_graph = True
            self._write(graph_def=graph_def)

    def charts(self, curves: Mapping[str, Collection[str]]) -> None:
        """Records the charts, unless the folder has some: TensorBoard reads only the first."""
        if summaries.CHARTS not in self._last_steps:
            self._add(0, summaries.charts_summary(curves))

    def params(self, values: Mapping[str, Param], tuned: Collection[str] | None = None) -> None:
        """Records tuned values for the HPARAMS tab, all values for the TEXT tab, without secrets.

        After a restart they replace the earlier values, since TensorBoard reads only the first
        settings of a run.
        """
        try:
            for path in self._earlier if self._file else ():
                trim(path, lambda event: not _has_tag(event, summaries.PARAM_TAGS))
        except OSError as error:
            self._give_up(error)
        for summary in summaries.param_summaries(redacted(values), tuned, _row(self._logdir)):
            self._write(step=0, summary=summary)
        self._has_params = True

    def close(self, status: str = FINISHED) -> None:
        """Ends the run; a second call does nothing."""
        if self._has_params:
            self._write(step=0, summary=summaries.end_summary(status == FINISHED))
            self._has_params = False
        if self._file:
            self._file.close()
            self._file = None
        self._lock.close()

    def _read_earlier(self, resume_step: int | None) -> None:
        """Removes the events after the checkpoint, and reads what the earlier run has recorded.

        Raises a `UserError` if the run is new, but the folder has points of an earlier run.
        """
        self._earlier = event_files(self._logdir)
        limit = resume_step or 0
        for path in self._earlier:
            if resume_step is not None:
                trim(path, lambda e: e.step <= limit and not _has_tag(e, (summaries.SESSION_END,)))
            for _, event in read_events(path):
                self._has_graph = self._has_graph or event.HasField("graph_def")
                self._has_params = self._has_params or _has_tag(event, summaries.PARAM_TAGS)
                for value in event.summary.value:
                    if value.tag not in (*summaries.PARAM_TAGS, summaries.SESSION_END):
                        self._last_steps[value.tag] = event.step
        if resume_step is None and self._last_steps:
            raise UserError(
                f"log folder {self._logdir!r} holds events up to step"
                f" {max(self._last_steps.values())} of another run; expected an empty one"
                " for a new run; give another folder, or resume from a checkpoint"
            )

    def _add(self, step: int, *added: Summary) -> None:
        """Writes summaries whose steps must increase; writes none of them if one step does not."""
        for tag in [value.tag for summary in added for value in summary.value]:
            last = self._last_steps.get(tag)
            if last is not None and step <= last:
                raise ValueError(
                    f"step {step} of {tag!r} comes after its step {last}; the steps of a name must"
                    " strictly increase"
                )
            self._last_steps[tag] = step
        for summary in added:
            self._write(step=step, summary=summary)

    def _write(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        if self._file:
            try:
                self._file.write(Event(wall_time=time.time(), **fields))
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._file:
            self._file.close()
            self._file = None
        self._say(
            f"TensorBoard: no more events are written to {self._logdir!r} ({reason_of(error)});"
            " the run continues"
        )


def _row(logdir: str) -> str:
    """Returns a name for a run that is unique within its log folder: its short path."""
    path = os.path.abspath(logdir)
    below = os.path.relpath(path)
    name = os.sep.join(path.split(os.sep)[-2:]) if below.startswith(os.pardir) else below
    return name[len("runs/") :] if name.startswith("runs/") else name


def _has_tag(event: Event, tags: Container[str]) -> bool:
    return any(value.tag in tags for value in event.summary.value)
