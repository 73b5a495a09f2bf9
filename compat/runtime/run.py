"""Describes a run to sessions and runtimes: where it writes, and how often."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from compat.checkpoint.io import CheckpointIO
from compat.errors import UserError


class Run:
    """A run of a program, as one of its tasks sees it: what it records, where, and when.

    A `Supervisor` is a `Run`. Sessions and runtimes read it, and never create one. The supervisor's
    services write summaries and checkpoints at its intervals, on the chief only (`is_chief`).
    """

    USE_DEFAULT = 0  # The same value as in TensorFlow, since users pass it on.

    runtime: Any
    services: Any
    is_chief: bool  # Whether this task initializes variables and writes checkpoints and summaries.
    logdir: str | None  # The folder of its events and checkpoints.
    recovery: CheckpointIO  # The checkpoints of the log folder.
    saver: Any
    save_path: str | None  # Prefix of the checkpoints, without the step.
    save_model_secs: float  # Seconds between two checkpoints; 0 for none.
    save_summaries_secs: float
    global_step: Any  # The variable that counts the updates, or None.
    summary_op: Any  # A tensor, a `Step`, or `USE_DEFAULT`.
    init_fn: Callable[[Any], None] | None  # Gives a new run its first values.
    graph: Any
    coord: Any  # Stops the threads of this process together.
    sync_optimizer: Any
    recovery_wait_secs: float
    max_wait_secs: float
    own: Any  # TensorFlow's supervisor, of a graph.
    graph_arguments: dict[str, Any]  # The arguments for that supervisor.
    _writer: Any

    @property
    def summary_writer(self) -> Any:
        """The chief's `FileWriter` in the log folder, created on first use; else None."""
        if self._writer is self.USE_DEFAULT:
            self._writer = self.own.summary_writer
        return self._writer

    def summary_computed(self, sess: Any, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary: a `Summary`, its serialized bytes, or a dict of scalars by name.

        Raises:
          UserError: the run has no summary writer.
        """
        if self.summary_writer is None:
            raise UserError(
                "summary_computed() requires a summary writer; pass logdir= to the chief"
            )
        self.services.write_summary(sess, summary, global_step)

    def start_queue_runners(
        self, sess: Any, queue_runners: Sequence[Any] | None = None
    ) -> list[Any]:
        """Starts threads for the graph's queue runners, and returns them."""
        threads: list[Any] = self.own.start_queue_runners(sess, queue_runners)
        return threads

    StartQueueRunners = start_queue_runners
    SummaryComputed = summary_computed
