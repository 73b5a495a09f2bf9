"""What the programs of a comparison share: their flags, processor time, and the AUC."""

from __future__ import annotations

import argparse
import glob
import json
import os
import time
from typing import Any

import numpy as np

NUMBERS, CATEGORIES = 13, 26


def flags() -> Any:
    """Returns the flags of a program by hand; those of a launcher may be among them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    for name in ("max_steps", "warm_up", "batch_size", "buckets", "width"):
        parser.add_argument("--" + name, type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="layers without tables and input")
    parser.add_argument("--hidden", default="1024,512,256")
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--job_name", default="worker")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--ps_hosts", default="")
    parser.add_argument("--worker_hosts", default="local")
    return parser.parse_known_args()[0]


def files(folder: str, split: str) -> list[str]:
    return sorted(glob.glob(folder + "/" + split + "*"))


def kernel(before: int, size: int) -> np.ndarray:
    """Returns the first weights of a layer, float32 `[before, size]`."""
    random = np.random.RandomState(1)
    return (random.standard_normal([before, size]) * (2.0 / before) ** 0.5).astype(np.float32)


def cpu_seconds() -> float:
    """Returns the processor time of all tasks: this process, and others of its parent."""
    total = 0
    for file in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(file) as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        if int(fields[1]) == os.getppid():
            total += int(fields[11]) + int(fields[12])
    return float(total) / os.sysconf("SC_CLK_TCK")


class Clock:
    """Seconds and processor seconds of an update, from the first reading to the last."""

    def __init__(self) -> None:
        self._readings: list[tuple[int, float, float]] = []

    @property
    def runs(self) -> bool:
        return bool(self._readings)

    def read(self, step: int) -> None:
        self._readings.append((step, time.time(), cpu_seconds()))

    def print(self, auc: float, **others: Any) -> None:
        """Prints what was measured as a line of JSON."""
        ends = zip(self._readings[0], self._readings[-1])
        steps, wall, cpu = (end - begin for begin, end in ends)
        found = {"wall": wall / steps, "cpu": cpu / steps, "auc": auc, **others}
        print(json.dumps(found), flush=True)


def auc(labels: Any, scores: Any) -> float:
    """Returns the area under the ROC curve of float scores `[n]` for labels of 0 and 1."""
    order = np.argsort(scores, kind="mergesort")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    ones = labels.sum()
    return float((ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones)))
