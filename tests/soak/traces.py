"""What the processes of a cluster take of their machine, from their start to their end."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import NamedTuple, Sequence

# In the first third of its life a process loads, builds and makes its first connections.
_LEAST_SECS = 150.0
# More than that is no noise: of memory, a part of it and some; of threads and files, a number.
_MORE_MEMORY, _MORE_MB, _MORE = 0.1, 20.0, 8
# What a process of TensorFlow keeps of a peer that was lost. Of a coordinator: a server, its
# variables and values for ten minutes, and some of the threads for ever. Of a worker: the others,
# threads. Measured with TensorFlow alone on 2.21: 6 threads of a parameter server and 12 of a
# worker; 4 threads. Measured here: up to 25 MB.
_KEPT_MB, _KEPT_THREADS = 30.0, 14


class Sample(NamedTuple):
    """What a process takes at one moment.

    Attributes:
      age: seconds since it was first seen.
      memory: resident, in MB.
      threads: how many.
      files: how many descriptors are open.
    """

    age: float
    memory: float
    threads: int
    files: int


def started(pid: int) -> str:
    """Returns when a process was started, in ticks of the machine; "" if there is none.

    An id alone is another process's soon: a machine has 32,768, and each thread takes one.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


class Trace:
    """One process, by its id.

    Attributes:
      task: what it is, as "ps 0".
      began: when it was first seen.
      samples: oldest first.
    """

    def __init__(self, pid: int, task: str, now: float) -> None:
        self.task = task
        self.samples: list[Sample] = []
        self._process = Path(f"/proc/{pid}")
        self.began = now

    def sample(self, now: float) -> None:
        """Looks once; does nothing when the process has ended."""
        try:
            pages = int((self._process / "statm").read_text().split()[1])
            threads = len(os.listdir(str(self._process / "task")))
            files = len(os.listdir(str(self._process / "fd")))
        except OSError:
            return
        if pages:  # None are left to one that is ending.
            memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
            self.samples.append(Sample(now - self.began, memory, threads, files))

    @property
    def secs(self) -> float:
        """For how long it was seen."""
        return self.samples[-1].age if self.samples else 0.0

    def settled(self) -> tuple[Sample, Sample] | None:
        """Returns the medians of the second and of the last third of its life.

        None of a process that did not live long enough to tell.
        """
        if self.secs < _LEAST_SECS:
            return None
        third = max(1, len(self.samples) // 3)
        return _median(self.samples[third : 2 * third]), _median(self.samples[-third:])

    def is_flat(self, peers: Sequence[Trace] = (), loaded: float = 0.0) -> bool:
        """Whether it has not grown since it had settled; true as well if that cannot be told.

        Up to so many MB as it takes once it has `loaded`, which may last, it may have grown.
        `peers` are those that this process has met, one in the place of the other: it may have
        grown by what TensorFlow keeps of each that was lost.
        """
        found = self.settled()
        if found is None:
            return True
        first, last = found
        begun = [peer.began - self.began for peer in peers]
        lost = sum(first.age < age <= last.age for age in begun)
        return (
            last.memory
            <= max(loaded, first.memory * (1 + _MORE_MEMORY) + _MORE_MB + _KEPT_MB * lost)
            and last.threads <= first.threads + _MORE + _KEPT_THREADS * lost
            and last.files <= first.files + _MORE
        )


def _median(samples: list[Sample]) -> Sample:
    age, memory, threads, files = map(statistics.median, zip(*samples))
    return Sample(age, memory, int(threads), int(files))
