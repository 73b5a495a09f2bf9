"""Samples CPU, memory and network of a task, for the MLflow run of its log folder.

    with system_metrics.sampled(lambda: (logdir, "worker-1"), every=10.0):
        train()

Each task appends to a spool of its own, below `system/` in the log folder, once the run has one.
The run's sender delivers these spools, so sampling never waits for a server. MLflow's own monitor
samples one process per run, loads MLflow in it, and does not exist before MLflow 2.8. The names of
metrics are those of the monitor with another prefix: MLflow lists `system/` before the metrics of
training.
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
_PREFIX = "workload"  # MLflow sorts metrics by name; this comes after "validation".
# The log folder of the run, and the task, such as "worker-1"; None until both are known.
Place = Callable[[], Optional[Tuple[str, str]]]
_EXIT_SECS = 5.0  # Seconds for the last sample, since the log folder may be on another machine.


@contextlib.contextmanager
def sampled(place: Place, every: float) -> Iterator[None]:
    """Samples this process in a thread while the context is open.

    Args:
      place: Returns the log folder of the run and the name of the task, which becomes part of the
        names: `workload/worker-1/...`. If the folder does not exist here, nothing is recorded.
      every: Seconds between two samples, fewer at first; 0 disables sampling.
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
    """Returns the folders in a log folder that have samples, one for each task."""
    with contextlib.suppress(OSError):
        entries = sorted(os.scandir(os.path.join(logdir, FOLDER)), key=lambda entry: entry.name)
        return [entry.path for entry in entries if os.path.exists(os.path.join(entry, spool.SPOOL))]
    return []


def _record(place: Place, every: float, over: threading.Event) -> None:
    """Appends samples, at least one, until `over` is set; an error only ends the sampling."""
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
    """The resources in use by this process and its machine; CPU is measured between samples."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()
        self._network = psutil.net_io_counters()

    def sample(self) -> dict[str, float]:
        """Returns the values by name."""
        values = {
            "cpu_utilization_percentage": self._process.cpu_percent(),
            "memory_usage_megabytes": self._process.memory_info().rss / 1e6,
            "system_memory_usage_percentage": psutil.virtual_memory().percent,
        }
        now, first = psutil.net_io_counters(), self._network
        if now is not None and first is not None:  # A container may have no network interface.
            values["network_receive_megabytes"] = (now.bytes_recv - first.bytes_recv) / 1e6
            values["network_transmit_megabytes"] = (now.bytes_sent - first.bytes_sent) / 1e6
        return values
