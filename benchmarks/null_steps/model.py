"""A model of what null steps cost, fitted to some measurements and held against others.

A step moves `messages` tensors and `megabytes` MB. Made by one worker while all others wait, it
takes `alone = a + b messages + c megabytes + d megabytes / servers` ms: the parts of several
servers come at the same time, the bytes of one server one after the other. Its processor time,
where processors are busy, is such a sum without the last term for the worker, and one for all
servers. Workers on one machine share its cores, as the customers of a closed network of queues
share a station: a step holds it for `held = cpu / cores`, and the rest of `alone` waits for nobody.
Mean value analysis (Reiser and Lavenberg, 1980) gives the time of a step from how many others a
worker finds in the queue when it comes:

    time(n) = rest + held (1 + queue(n - 1));  queue(n) = n (1 - rest / time(n))

With one worker that is `alone`; with many it comes near to `n held`: the processors are the limit.
"""

from __future__ import annotations

from statistics import median
from typing import Callable, Collection, Mapping, NamedTuple, Sequence

import numpy as np

MB = 1e6
ROWS, WIDTH = 32, 64
# The bytes of a step in one direction; of "scalar" from each server.
KINDS = {"scalar": 4.0, "1 MB": MB, "100 MB": 100 * MB, "32 rows": 4.0 * ROWS * WIDTH}
KINDS["1 GB"] = 1000 * MB  # Only predicted.


class Cell(NamedTuple):
    """Which steps: what one moves, how many workers make them, and from how many servers."""

    kind: str
    workers: int
    servers: int

    @property
    def messages(self) -> int:
        """How many tensors a step moves: one each way for each server, and the rows' numbers."""
        return self.servers * (3 if self.kind == "32 rows" else 2)

    @property
    def megabytes(self) -> float:
        """How much a step moves, both ways."""
        return 2 * KINDS[self.kind] * (self.servers if self.kind == "scalar" else 1) / MB


class Cost(NamedTuple):
    """What a step takes, in ms: wall time, and processor time of the worker and of all servers."""

    wall: float
    worker: float
    servers: float

    @property
    def cpu(self) -> float:
        return self.worker + self.servers


def cost(measured: Sequence[Sequence[float]]) -> Cost:
    """Returns what a step took, from steps, seconds, CPU seconds and those of servers by worker."""
    made, seconds, cpu, served = zip(*measured)
    rate, steps = sum(n / wall for n, wall in zip(made, seconds)), sum(made)
    # Each worker has read what the servers did for all of them.
    return Cost(1e3 * len(made) / rate, 1e3 * sum(cpu) / steps, 1e3 * median(served) / steps)


class Model:
    """The cost of steps, fitted by the least squares of relative errors.

    Attributes:
      alone: ms of each step, of each message, of each MB, and of each MB of one server, where no
        other worker makes steps.
      worker: the first three of the worker's processor time, where as many as possible make steps.
      servers: of that of all servers together.
    """

    def __init__(self, measured: Mapping[Cell, Cost], cores: int) -> None:
        self._cores = cores
        fitted = [cell for cell in measured if is_fitted(cell, measured)]
        fewest, most = (choose(cell.workers for cell in fitted) for choose in (min, max))
        single = {cell: measured[cell] for cell in fitted if cell.workers == fewest}
        crowded = {cell: measured[cell] for cell in fitted if cell.workers == most}
        self.alone = _fit(single, lambda cost: cost.wall, _wall_terms)
        self.worker = _fit(crowded, lambda cost: cost.worker, _terms)
        self.servers = _fit(crowded, lambda cost: cost.servers, _terms)

    def predict(self, cell: Cell) -> Cost:
        """Returns what a step takes where all tasks share the cores of one machine."""
        alone, worker, servers = self._parts(cell)
        held = (worker + servers) / self._cores
        return Cost(shared(held, max(alone - held, 0.0), cell.workers), worker, servers)

    def apart(self, cell: Cell, cores: int, bandwidth: float) -> float:
        """Returns the ms of a step where each task has a machine of its own.

        The busiest part is the limit: a worker's cores, a server's, or a link: that of a worker, or
        that of a server, which all workers share. A step pulls before it pushes.

        Args:
          cell: what makes steps.
          cores: of each machine.
          bandwidth: of each link, in MB a second in each direction.
        """
        _, worker, servers = self._parts(cell)
        for_each = cell.workers / cell.servers
        link = 1e3 * cell.megabytes / bandwidth * max(1.0, for_each)
        return float(self.alone[0]) + max(link, worker / cores, for_each * servers / cores)

    def _parts(self, cell: Cell) -> list[float]:
        terms = _terms(cell)
        processors = [float(part @ terms) for part in (self.worker, self.servers)]
        return [float(self.alone @ _wall_terms(cell)), *processors]


def is_fitted(cell: Cell, measured: Collection[Cell]) -> bool:
    """Whether the model is fitted to a cell: one with the fewest or most workers and servers."""
    workers, servers = ({each[place] for each in measured} for place in (1, 2))
    ends = {min(workers), max(workers)}, {min(servers), max(servers)}
    return cell.workers in ends[0] and cell.servers in ends[1]


def shared(held: float, rest: float, workers: int) -> float:
    """Returns the time of a step, of which workers in turn hold a station for a part."""
    queue, time = 0.0, held + rest
    for number in range(1, workers + 1):
        time = rest + held * (1 + queue)
        queue = number * (1 - rest / time)
    return time


def _terms(cell: Cell) -> np.ndarray:
    return np.array([1.0, cell.messages, cell.megabytes])


def _wall_terms(cell: Cell) -> np.ndarray:
    return np.append(_terms(cell), cell.megabytes / cell.servers)


def _fit(
    measured: Mapping[Cell, Cost],
    part: Callable[[Cost], float],
    terms_of: Callable[[Cell], np.ndarray],
) -> np.ndarray:
    values = np.array([part(cost) for cost in measured.values()])
    terms = np.array([terms_of(cell) for cell in measured]) / values[:, None]
    parameters: np.ndarray = np.linalg.lstsq(terms, np.ones(len(values)), rcond=None)[0]
    return parameters
