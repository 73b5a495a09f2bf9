"""Lets programs connect with a server one after another, since a server may crash otherwise."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping

from compat._tensorflow import tf1
from compat.cluster.liveness import key_value

# Time for the program whose turn it is, since a program that was killed does not end its turn.
_PATIENCE_SECS = 20.0


@contextlib.contextmanager
def taken(servers: Mapping[str, str], patience: float = _PATIENCE_SECS) -> Iterator[None]:
    """Waits for this program's turn at each of several servers, and ends the turn after the body.

    If the turn of another program lasts longer than `patience` seconds, this program takes it over.

    Args:
      servers: addresses, such as "127.0.0.1:2222", by task, such as "/job:ps/task:0".
      patience: seconds to wait for each server.
    """
    with contextlib.ExitStack() as stack:
        # All programs use the same order, so that no two of them wait for each other.
        for task, address in sorted(servers.items()):
            session = stack.enter_context(key_value.session(f"grpc://{address}", task, patience))
            turn = tf1.FIFOQueue(1, [tf1.int32], shapes=[()], shared_name="compat_turn")
            begin, end = turn.enqueue(0), turn.dequeue()
            with contextlib.suppress(tf1.errors.DeadlineExceededError):
                session.run(begin)
            stack.callback(_run, session, end)
        yield


def _run(session: Any, operation: Any) -> None:
    # The server may be lost, or another program may have taken over.
    with contextlib.suppress(tf1.errors.OpError):
        session.run(operation)
