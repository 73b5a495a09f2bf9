"""Lets programs connect with a server one after another."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping

from compat._tensorflow import tf1
from compat.cluster.liveness import key_value

# For the program whose turn it is; one that has died does not end its own.
_PATIENCE_SECS = 20.0


@contextlib.contextmanager
def taken(servers: Mapping[str, str], patience: float = _PATIENCE_SECS) -> Iterator[None]:
    """Waits for this program's turn at each of several servers, and ends it behind the body.

    The turn of another program that lasts longer than `patience` seconds is taken over.

    Args:
      servers: their addresses, such as "127.0.0.1:2222", by task, such as "/job:ps/task:0".
      patience: for each server.
    """
    with contextlib.ExitStack() as stack:
        # In one order in all programs, so that no two of them have what the other one waits for.
        for task, address in sorted(servers.items()):
            session = stack.enter_context(key_value.session(f"grpc://{address}", task, patience))
            turn = tf1.FIFOQueue(1, [tf1.int32], shapes=[()], shared_name="compat_turn")
            begin, end = turn.enqueue(0), turn.dequeue()
            with contextlib.suppress(tf1.errors.DeadlineExceededError):
                session.run(begin)
            stack.callback(_run, session, end)
        yield


def _run(session: Any, operation: Any) -> None:
    with contextlib.suppress(tf1.errors.OpError):  # The server is gone, or another has taken over.
        session.run(operation)
