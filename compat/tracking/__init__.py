"""Writers of the chief: TensorBoard, MLflow and the console.

    console = Console(logdir, total_steps=11000)
    writer = MultiWriter(
        TensorBoard(logdir, resume_step=None, say=console.say),
        Tracker(logdir, tracking_uri=None, experiment_name="mnist", run_name=None,
                say=console.say))
    writer.params({"batch_size": 100, "learning_rate": 0.001})
    writer.scalars(100, {"train/cost": 2.3026, "validation/accuracy": 0.11})
    console.say(step_line(100, epoch=1, batch=100, batches=550, loss=2.3026, avg_ms=2.5))
    writer.artifact(logdir + "/model.ckpt-100.index", folder="checkpoint")
    writer.close("FINISHED")
    console.say(tracking_command(logdir, tracking_uri=None))

All tasks but the chief get a plain `Writer()`, which writes nothing. Importing this package imports
neither TensorFlow nor TensorBoard nor MLflow.
"""

from __future__ import annotations

from compat.tracking.console import Console, closing_lines, step_line
from compat.tracking.mlflow.stores import experiment, run_page, store_uri, tracking_command
from compat.tracking.mlflow.tracker import Tracker
from compat.tracking.redaction import redacted, redacted_text
from compat.tracking.tensorboard.writer import TensorBoard
from compat.tracking.writer import FAILED, FINISHED, KILLED, MultiWriter, Param, Writer

__all__ = [
    "Console",
    "FAILED",
    "FINISHED",
    "KILLED",
    "MultiWriter",
    "Param",
    "TensorBoard",
    "Tracker",
    "Writer",
    "closing_lines",
    "experiment",
    "redacted",
    "redacted_text",
    "run_page",
    "step_line",
    "store_uri",
    "tracking_command",
]
