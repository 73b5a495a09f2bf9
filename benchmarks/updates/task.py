"""What the twins share and do not measure: their command line, their data, and their result."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Iterator, Sequence

import numpy as np

from compat import datasets
from compat.cluster import ports

BATCH_SIZE = 100
LEARNING_RATE = 0.001


@dataclass(frozen=True)
class Task:
    """The task of one process; the flags are those of `experiments.mnist`."""

    job: str  # "ps" or "worker".
    index: int  # Number of the task in its job.
    cluster: dict[str, list[str]]  # Addresses by job.
    updates: int  # Global steps after which the training is over.
    warm_up: int  # Global steps that are made before the clock starts.
    data: str  # Name of the data set.
    packed: int  # Updates in a call of the session, or in a closure.
    alone: bool  # Whether it trains without a cluster.


def from_command_line(argv: Sequence[str] | None = None) -> Task:
    """Returns the task that a command line describes, by default the own; lets go of its port."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", choices=["ps"])
    parser.add_argument("--run_token")
    parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--max_steps", type=int, required=True)
    parser.add_argument("--warm_up", type=int, required=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--packed", type=int, default=1)
    parser.add_argument("--alone", action="store_true")
    flags = parser.parse_args(argv)
    cluster = {"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")}
    port = cluster[flags.job_name][flags.task_index].rpartition(":")[2]
    ports.release_inherited(int(port))
    if flags.alone and flags.job_name == "ps":
        sys.exit()
    return Task(
        flags.job_name,
        flags.task_index,
        cluster,
        flags.max_steps,
        flags.warm_up,
        flags.dataset,
        flags.packed,
        flags.alone,
    )


def training_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns images, uint8 `[n, 784]`, and labels, int32 `[n]`."""
    train = datasets.load(name).train
    return train.images.reshape(-1, 28 * 28), train.labels


def initial_weights() -> Iterator[np.ndarray]:
    """Yields the weights of the 784-100-10 network, in the order of its layers; biases are 0."""
    random = np.random.RandomState(1)
    for shape in ([784, 100], [100, 10]):
        yield random.standard_normal(shape).astype(np.float32)


@dataclass
class Clock:
    """Two moments of a training; printed as one line of JSON when it is over."""

    steps: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def note(self, step: int, cost: float, now: float | None = None) -> None:
        """Notes when the global step is reached; now by default."""
        self.steps.append(step)
        self.times.append(self.now() if now is None else now)
        self.costs.append(float(cost))

    @staticmethod
    def now() -> float:
        """Returns the time in seconds since 1970."""
        return time.time()

    def print(self) -> None:
        """Prints what was noted."""
        print(json.dumps(vars(self)), flush=True)
