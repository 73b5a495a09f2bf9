"""Samples CPU, memory and network of a task, for the MLflow run of its log folder.

    with system_metrics.sampled(logdir, "worker-1", every=10.0):
        train()

Each task appends to a spool of its own, below `system/` in the log folder, once the run has one.
The run's sender delivers them, so that sampling waits for no server. MLflow's own monitor samples
one process a run, loads MLflow there, and does not exist before MLflow 2.8; the names are its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Iterator

import psutil

from compat.errors import UserError
from compat.tracking.mlflow import spool

FOLDER = "system"
_EXIT_SECS = 5.0  # For the last sample, as the log folder may be another machine's.


@contextlib.contextmanager
def sampled(logdir: str, task: str, every: float) -> Iterator[None]:
    """Samples this process while the context is open, in a thread.

    Args:
      logdir: the log folder of the run; nothing is recorded where this machine does not have it.
      task: such as "worker-1", which becomes part of the names: `system/worker-1/...`.
      every: seconds between two samples, fewer at first; 0 for none.
    """
    over = threading.Event()
    thread = threading.Thread(target=_record, args=(logdir, task, every, over), daemon=True)
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


def _record(logdir: str, task: str, every: float, over: threading.Event) -> None:
    """Appends samples until `over` is set, one in any case; a failure costs no more than these."""
    folder = os.path.join(logdir, FOLDER, task)
    samples, step, file = 0, 0, None
    with contextlib.suppress(OSError, UserError, psutil.Error):
        usage = _Usage(f"{FOLDER}/{task}/")
        while not over.wait(min(every, 1.0 + samples)) or not samples:
            if file is None and os.path.exists(os.path.join(logdir, spool.SPOOL)):
                os.makedirs(folder, exist_ok=True)
                file = spool.Spool(folder)
                step = spool.last_step(folder) + 1
            if file is not None:
                values = usage.sample()
                file.append("metrics", step=step, time=spool.now_ms(), values=values)
                samples, step = samples + 1, step + 1
            elif over.is_set():
                break
    if file is not None:
        file.close()


class _Usage:
    """What this process and its machine use; CPU is counted from one sample to the next."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
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
        return {self._prefix + name: value for name, value in found.items()}
