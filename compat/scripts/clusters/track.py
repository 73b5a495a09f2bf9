"""`--track`: logs an unchanged script to TensorBoard and MLflow.

Only the chief writes. Flags become parameters, and every scalar summary becomes a metric. MNIST, if
the script reads it, becomes the data set of the run, and a SavedModel that the script writes
becomes its model. If a script writes to several folders, the names of metrics begin with the
folder. A script that starts again from step 0 starts a new run.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Mapping

import numpy as np

from compat._tensorflow import private, tf1
from compat.checkpoint.io import CheckpointIO
from compat.contrib.tutorials import input_data
from compat.datasets import idx
from compat.datasets.published import FASHION_MNIST, MNIST
from compat.errors import UserError
from compat.processes import stop_signals
from compat.scripts.clusters import distributed, inherited
from compat.scripts.shims import flags as script_flags
from compat.tracking import (
    FAILED,
    FINISHED,
    KILLED,
    Tracker,
    experiment,
    redacted,
    run_page,
    store_uri,
    tracking_command,
)
from compat.tracking.files import lock, write_atomically
from compat.tracking.mlflow import earlier_run, model, run_id, spool
from compat.tracking.mlflow.source import environment as releases
from compat.tracking.mlflow.system_metrics import sampled
from compat.tracking.tensorboard import summaries
from compat.tracking.tensorboard.eventfile import EventFile
from compat.tracking.tensorboard.run_names import RunNames

_SAMPLES_SECS = 10.0
# Flags for tasks and folders, which do not help to compare runs.
_PLACES = re.compile(r"(job|task|host|addr|port|server|cluster|replica|url|file|folder|dir|path)")


class Record:
    """The MLflow run of a script, in the first folder to which the script writes events.

    The run starts with the first scalar: its step shows whether the script resumes.
    """

    def __init__(self) -> None:
        self._tracker: Tracker | None = None
        self._opening = threading.Lock()
        # Folder of the run; in a task that is not the chief, the folder that the script asked for.
        self._logdir: str | None = None
        self._locks: dict[str, Any] = {}
        self._names = RunNames()
        self._has_begun = False
        self._params: dict[str, Any] = {}
        self._has_settings = False  # Whether the events for the HPARAMS tab have been written.
        self._data: list[tuple[Any, ...]] = []
        self._saved_model: str | None = None
        self._sampling = contextlib.ExitStack()

    def start(self) -> None:
        """Samples this task's resource use from now on, and makes stop signals close the run."""
        if threading.current_thread() is threading.main_thread():
            stop_signals.before_death(lambda signum: self.close(128 + signum))
        self._sampling.enter_context(sampled(self._place, _SAMPLES_SECS))

    def _place(self) -> tuple[str, str] | None:
        task, note = distributed.task, os.environ.get(inherited.RECORD, "")
        logdir = self._logdir
        if not distributed.is_chief() and os.path.exists(note):
            logdir = Path(note).read_text("utf-8")
        return (logdir, f"{task.job}-{task.index}" if task else "worker-0") if logdir else None

    def folder(self, logdir: str) -> str:
        """Returns `logdir`, or a temporary folder to discard if another task writes to `logdir`."""
        # Remote folders have no locks, and this process does not read them.
        if "://" in os.fspath(logdir):
            return logdir
        logdir = os.path.abspath(os.fspath(logdir))
        if not distributed.is_chief() or not self._own(logdir):
            self._logdir = self._logdir or logdir
            nowhere = tempfile.mkdtemp(prefix="compat-run-")
            atexit.register(shutil.rmtree, nowhere, ignore_errors=True)
            return nowhere
        self._names.add(logdir)
        self._begin(logdir)
        return logdir

    def _own(self, logdir: str) -> bool:
        """Returns whether this process, and no other of the run, writes to the folder."""
        if logdir not in self._locks:
            os.makedirs(logdir, exist_ok=True)
            with contextlib.suppress(UserError):
                self._locks[logdir] = lock(os.path.join(logdir, "events.lock"), "in use")
        return logdir in self._locks

    def _begin(self, logdir: str) -> None:
        if self._has_begun:
            return
        self._logdir, self._has_begun = logdir, True
        self._params = {
            name: value if isinstance(value, (bool, int, float, str)) else str(value)
            for name, value in script_flags.FLAGS.values().items()
        }
        if os.environ.get(inherited.RECORD):
            write_atomically(os.environ[inherited.RECORD], logdir)

    def _opened(self, step: int | None) -> Tracker:
        """Returns the tracker; the first call creates it.

        Args:
          step: in the first call, the step of the script's first scalar, which shows whether the
            script resumes an earlier run; None if the script has written no scalar.
        """
        with self._opening:  # Threads of the script write summaries as well.
            self._tracker = self._tracker or self._open(step)
            return self._tracker

    def _open(self, step: int | None) -> Tracker:
        logdir = str(self._logdir)
        resumes = step is not None and earlier_run.is_resumed(logdir, step)
        if not resumes:
            try:
                earlier_run.set_aside(logdir)
            except (UserError, OSError) as error:
                distributed.say(f"{error}; this run is added to it")
        script = os.path.splitext(os.path.basename(sys.argv[0]))[0] or "script"
        name = experiment(None, script)
        tracker = Tracker(
            logdir,
            tracking_uri=None,
            experiment_name=name,
            run_name=None,
            resume_step=step - 1 if resumes and step is not None else None,
        )
        tracker.params(dict(self._params, script=sys.argv[0]))
        tracker.tags(releases(distributed.task.cluster if distributed.task else {}))
        for data in self._data:
            tracker.dataset(*data)
        return tracker

    def hyperparameters(self, logdir: str) -> list[Any]:
        """Returns the settings as summaries, for the run's first event file; [] for later files."""
        params = self._params
        if not params or logdir != self._logdir or self._has_settings:
            return []
        self._has_settings = True
        tuned = [name for name in params if not _PLACES.search(name)]
        return summaries.param_summaries(redacted(params), tuned)

    def event(self, logdir: str, event: Any) -> None:
        """Logs the scalars of an event that the script writes to a folder as metrics."""
        if logdir not in self._locks or not event.HasField("summary"):
            return
        scalars = [value for value in event.summary.value if value.HasField("simple_value")]
        if scalars:
            tracker, prefix = self._opened(event.step), self._names.prefix(logdir)
            tracker.scalars(event.step, {prefix + each.tag: each.simple_value for each in scalars})

    def dataset(self, name: str, checksum: str, source: str, sizes: Mapping[str, int]) -> None:
        """Records data that the script has read as an input of the run."""
        self._data.append((name, checksum, source, sizes))
        if self._tracker is not None:
            self._tracker.dataset(*self._data[-1])

    def saved_model(self, folder: str) -> None:
        """Records that the script has written a SavedModel; only the last one is logged."""
        self._saved_model = os.path.abspath(folder)

    def close(self, exit_code: int) -> None:
        """Ends the run with the status of the script's exit code, and prints how to open it."""
        if not self._has_begun and distributed.is_chief():
            logdir = os.path.abspath(time.strftime("runs/script-%Y%m%d-%H%M%S"))
            self._names.add(logdir)
            self._begin(logdir)
        tracker = self._opened(None) if self._has_begun else None
        self._sampling.close()
        if tracker is None or self._logdir is None:
            return
        is_stopped = exit_code - 128 in stop_signals.SIGNALS
        status = KILLED if is_stopped else FAILED if exit_code else FINISHED
        if self._has_settings:
            with contextlib.suppress(OSError):  # The script may have removed the folder.
                events = EventFile(self._logdir)
                events.write(_event(summaries.end_summary(status == FINISHED)))
                events.close()
        for prefix in CheckpointIO(self._logdir).history()[-1:]:
            for file in sorted(Path(prefix).parent.glob(Path(prefix).name + ".*")):
                tracker.artifact(str(file), folder="checkpoint")
        tracker.close(status)
        print(f"TensorBoard:  {self._names.command()}")
        print(f"MLflow:       {tracking_command(self._logdir, None)}", flush=True)
        page = run_page(self._logdir, None)
        if page is not None:
            print(f"This run:     {page}")
        if status == FINISHED:
            print(f"Model:        {self._log_model()}", flush=True)

    def _log_model(self) -> str:
        """Logs the SavedModel; returns its URI, or the reason why there is none."""
        logdir = str(self._logdir)
        if self._saved_model is None:
            return "none logged: the script writes no SavedModel, which names inputs and outputs"
        run = run_id.read(logdir)
        if run is None or spool.pending(logdir):
            return f"none logged: MLflow has not taken the run yet; {self._saved_model} stays"
        try:
            inputs, outputs = _signature(self._saved_model)
            uri = store_uri(None, logdir)
            return model.log(uri, run, self._saved_model, inputs, outputs, {})
        except (UserError, OSError) as error:
            return f"none logged: {error}"


RECORD = Record()


def _signature(folder: str) -> Any:
    """Returns the inputs and outputs of a SavedModel, of `serving_default` or the first one."""
    file: Any = importlib.import_module("tensorflow.core.protobuf.saved_model_pb2")
    graphs = file.SavedModel.FromString(Path(folder, "saved_model.pb").read_bytes()).meta_graphs
    signatures = dict(graphs[0].signature_def)
    chosen = signatures.get("serving_default") or (
        signatures[min(signatures)] if signatures else None
    )
    if chosen is None or not chosen.inputs:
        raise UserError(f"{folder} has no signature with inputs; give its builder one")

    def described(tensors: Any) -> dict[str, model.Tensor]:
        return {
            name: model.Tensor(
                tf1.as_dtype(info.dtype).as_numpy_dtype,
                [size.size if size.size >= 0 else None for size in info.tensor_shape.dim],
            )
            for name, info in tensors.items()
        }

    return described(chosen.inputs), described(chosen.outputs)


def _event(summary: Any) -> Any:
    """Returns a TensorBoard event of step 0, for a summary that describes the whole run."""
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(wall_time=time.time(), step=0, summary=summary)


def install() -> None:
    """Routes the event files of this process through `RECORD`; TensorFlow must be loaded."""
    home, user = private.event_writers()
    original: Any = home.EventFileWriter

    class EventFileWriter(original):
        def __init__(self, logdir: str, *args: Any, **kwargs: Any) -> None:
            folder = RECORD.folder(logdir)
            self._of_record = folder
            super().__init__(folder, *args, **kwargs)
            for summary in RECORD.hyperparameters(folder):
                event = tf1.Event.FromString(_event(summary).SerializeToString())
                super().add_event(event)

        def add_event(self, event: Any) -> None:
            super().add_event(event)
            RECORD.event(self._of_record, event)

    home.EventFileWriter = user.EventFileWriter = EventFileWriter
    _after(private.saved_model_builder(), "save", lambda path: RECORD.saved_model(_folder_of(path)))
    _after(input_data, "_arrays", _read)
    RECORD.start()


def _after(owner: Any, name: str, use: Any) -> None:
    """Patches a function of `owner` so that `use` receives each of its results as well."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def calls(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        use(result)
        return result

    setattr(owner, name, calls)


def _folder_of(path: Any) -> str:
    return os.path.dirname(path.decode() if isinstance(path, bytes) else path)


def _read(dataset: tuple[Any, str]) -> None:
    """Records the images and labels, for training and test, that the script has read."""
    arrays, source = dataset
    digest = hashlib.sha256()
    contents = [idx.encode(array.astype(np.uint8)) for array in arrays]
    for part in contents:
        digest.update(part)
    first = hashlib.sha256(contents[0]).hexdigest()
    known = [data.name for data in (MNIST, FASHION_MNIST) if first in data.sha256.values()]
    name = known[0] if known else os.path.basename(os.path.abspath(source))
    RECORD.dataset(
        name, digest.hexdigest(), source, {"train": len(arrays[0]), "test": len(arrays[2])}
    )
