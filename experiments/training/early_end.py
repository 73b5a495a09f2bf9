"""How workers that hand out their own updates hear that the chief ends the training early.

Not from the log folder, which only the chief has to see: by a text that lies on a parameter server.
Workers that make each update together hear it from each other, and others are handed nothing more.
"""

from __future__ import annotations

import contextlib
import time
from typing import Callable, Iterator

import compat
from compat import tf1
from compat.cluster.spec import Task
from compat.liveness import key_value

_NOTE = "training_ends_early"
_LOOK_SECS = 3.0  # A look takes some 15 ms.


def tell(server: compat.Server | None) -> None:
    """Tells the other workers, if there are any that have to be told."""
    if server is None or server.runtime != "legacy":
        return
    with contextlib.suppress(tf1.errors.OpError):  # A lost server is said by a training call.
        for target, task in _place(server):
            key_value.write(target, task, _NOTE, "1")


class Lookout:
    """Whether the chief has told so; another worker asks between its updates."""

    def __init__(
        self, server: compat.Server | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._clock = clock
        self._looked = clock()
        self._step = -1

    def look(self, step: int) -> bool:
        """Returns whether the training ends early, as far as is known; asks every three seconds.

        And at once if the global step does not move: then the gradients of replicas are taken no
        more, and those whose chief has gone have few left to make before they would wait for ever.

        Args:
          step: the global step.
        """
        now, before = self._clock(), self._step
        self._step = step
        if self._server is None or (now - self._looked < _LOOK_SECS and step != before):
            return False
        self._looked = now
        with contextlib.suppress(tf1.errors.OpError, compat.PeerError):
            return any(key_value.read(target, task, _NOTE) for target, task in _place(self._server))
        return False


def _place(server: compat.Server) -> Iterator[tuple[str, Task]]:
    """Yields where the text lies: the first parameter server, if there are any."""
    if "ps" in server.cluster.jobs:
        task = Task("ps", server.cluster.task_indices("ps")[0])
        yield "grpc://" + server.cluster.task_address(task.job, task.index), task
