"""Samples CPU, memory and network of a task, for the MLflow run of its log folder.

    with system_metrics.sampled(lambda: (logdir, "worker-1"), every=10.0):
        train()

Each task appends to a spool of its own, below `system/` in the log folder, once the run has one.
The run's sender delivers them, so that sampling waits for no server. MLflow's own monitor samples
one process a run, loads MLflow there, and does not exist before MLflow 2.8; the names are its own,
but for what they begin with: MLflow lists metrics of `system/` before those of the training.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Callable, Iterator, Optional, Tuple

import psutil

from compat.errors import UserError
from compat.tracking.mlflow import spool

FOLDER = "system"
_PREFIX = "workload"  # MLflow sorts metrics by name; this is after "validation".
# The log folder of the run, and the task, such as "worker-1"; None as long as they are not known.
Place = Callable[[], Optional[Tuple[str, str]]]
_EXIT_SECS = 5.0  # For the last sample, as the log folder may be another machine's.


@contextlib.contextmanager
def sampled(place: Place, every: float) -> Iterator[None]:
    """Samples this process while the context is open, in a thread.

    Args:
      place: returns the log folder of the run and the name of the task, which becomes part of
        the names: `workload/worker-1/...`. Nothing is recorded where this machine does not have it.
      every: seconds between two samples, fewer at first; 0 for none.
    """
    over = threading.Event()
    thread = threading.Thread(target=_record, args=(place, every, over), daemon=True)
    if every:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if every:
            thread.join(_EXIT_SECS)


def folders(logdir: str) -> list[str]:
    """Returns the folders of the tasks whose samples a log folder has."""
    with contextlib.suppress(OSError):
        found = sorted(os.scandir(os.path.join(logdir, FOLDER)), key=lambda entry: entry.name)
        return [entry.path for entry in found if os.path.exists(os.path.join(entry, spool.SPOOL))]
    return []


def _record(place: Place, every: float, over: threading.Event) -> None:
    """Appends samples until `over` is set, at least one; a failure only stops the samples."""
    samples, step, file, prefix = 0, 0, None, ""
    with contextlib.suppress(OSError, UserError, psutil.Error):
        usage = _Usage()
        while not over.wait(min(every, 1.0 + samples)) or not samples:
            logdir, task = place() or ("", "")
            if file is None and logdir and os.path.exists(os.path.join(logdir, spool.SPOOL)):
                folder, prefix = os.path.join(logdir, FOLDER, task), f"{_PREFIX}/{task}/"
                os.makedirs(folder, exist_ok=True)
                file = spool.Spool(folder)
                step = spool.last_step(folder) + 1
            if file is not None:
                values = {prefix + name: value for name, value in usage.sample().items()}
                file.append("metrics", step=step, time=spool.now_ms(), values=values)
                samples, step = samples + 1, step + 1
            elif over.is_set():
                break
    if file is not None:
        file.close()


class _Usage:
    """The resources that this process and its machine use; CPU is measured between samples."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()
        self._network = psutil.net_io_counters()

    def sample(self) -> dict[str, float]:
        """Returns the values by name."""
        found = {
            "cpu_utilization_percentage": self._process.cpu_percent(),
            "memory_usage_megabytes": self._process.memory_info().rss / 1e6,
            "system_memory_usage_percentage": psutil.virtual_memory().percent,
        }
        now, first = psutil.net_io_counters(), self._network
        if now is not None and first is not None:  # A container may have no interface.
            found["network_receive_megabytes"] = (now.bytes_recv - first.bytes_recv) / 1e6
            found["network_transmit_megabytes"] = (now.bytes_sent - first.bytes_sent) / 1e6
        return found
