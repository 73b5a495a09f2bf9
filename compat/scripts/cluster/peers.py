"""The tasks that a session of a script needs: none is waited for in silence.

TensorFlow waits without a word for tasks that have not come, 1.15 for those that are lost, and any
release for those whose host or network has gone.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from typing import Any, Callable, Iterator

from compat._tensorflow import tf1
from compat.errors import PeerError
from compat.liveness import watchdog
from compat.liveness.rendezvous import reason_unreachable, wait_for
from compat.liveness.watchdog import delivered, watched
from compat.scripts.cluster import distributed

_PATIENCE_SECS = 7200.0  # TensorFlow's own, for a session.
_EVERY_SECS = 10.0
_SCHEME = "grpc://"
_SERVER = "the server"  # That a client connects to which is no task itself.

# Sessions whose peers have all been there.
_met: weakref.WeakSet[Any] = weakref.WeakSet()


def called(session: Any, function: Callable[[], Any]) -> Any:
    """Returns what `function` returns, a call of a session; says for whom it waits.

    Raises:
      PeerError: a task that the session needs has not come, or is lost and TensorFlow does not
        say so.
    """
    if not _target(session).startswith(_SCHEME):
        return delivered(function)
    if session not in _met:
        wait_for(_needed(session), _PATIENCE_SECS, distributed.say, _EVERY_SECS)
        _met.add(session)
    return watched(lambda: delivered(function), lambda: _miss(session))


def closed(session: Any, close: Callable[[], None]) -> None:
    """Closes a session; waits for no task that is lost."""
    if _target(session).startswith(_SCHEME):
        watchdog.closed(close)
    else:
        close()


@contextlib.contextmanager
def saying(what: str) -> Iterator[None]:
    """Says every so often, while the body runs, for what it waits."""
    over = threading.Event()
    start = time.monotonic()

    def say() -> None:
        while not over.wait(_EVERY_SECS):
            distributed.say(f"waiting for {what} ({time.monotonic() - start:.0f} s)")

    threading.Thread(target=say, name="waiting", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _target(session: Any) -> str:
    target = session.sess_str or ""
    return target.decode() if isinstance(target, bytes) else str(target)


def _needed(session: Any) -> dict[str, str]:
    """Returns the addresses, by name, of the tasks without which a session does not open."""
    task = distributed.task()
    if task is None or not distributed.is_own(_target(session)):
        return {_SERVER: _target(session)[len(_SCHEME) :]}
    # TensorFlow merges the options of the server and those of the session.
    filters = [*task.filters, *session._config.device_filters]
    places = [tf1.DeviceSpec.from_string(text) for text in filters]
    return {
        f"/job:{job}/task:{index}": address
        for job, index, address in task.others()
        if not places
        or any(place.job in (None, job) and place.task in (None, index) for place in places)
    }


def _miss(session: Any) -> None:
    """Raises an error if a task that has a part of the session's graph cannot be reached."""
    needed = _needed(session)
    devices = {operation.device for operation in session.graph.get_operations()}
    places = [tf1.DeviceSpec.from_string(device) for device in devices if device]
    parts = {f"/job:{place.job}/task:{place.task or 0}" for place in places}
    for name, address in needed.items():
        if name not in parts and name != _SERVER:
            continue
        # With time for a packet that gets lost; a task that is gone says so at once.
        if reason_unreachable(address, timeout=10.0) is not None:
            raise PeerError(f"lost {name} at {address}; start all tasks again")
