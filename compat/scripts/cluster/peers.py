"""Reports tasks that a script's session waits for or has lost.

TensorFlow waits silently for tasks that have not started, 1.15 also for lost ones, and every
release for tasks whose host or network is down.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from typing import Any, Callable, Iterator

from compat._tensorflow import tf1
from compat.errors import PeerError
from compat.liveness.diagnosis import unanswered
from compat.liveness.monitor import Monitor, connection_checks
from compat.liveness.watchdog import close_session, retry_duplicate_rpc, run_with_watchdog
from compat.scripts.cluster import distributed

_PATIENCE_SECS = 7200.0  # TensorFlow's default for a session.
_EVERY_SECS = 10.0
_SCHEME = "grpc://"
_SERVER = "the server"  # Addresses that a client outside the cluster connects to.

# Sessions whose peers have all been reached.
_met: weakref.WeakSet[Any] = weakref.WeakSet()


def called(session: Any, function: Callable[[], Any]) -> Any:
    """Runs `function`, a call of a session, and logs which tasks it waits for; returns its result.

    Raises a PeerError if a task that the session needs has not started, or is lost and TensorFlow
    does not report it.
    """
    if not _target(session).startswith(_SCHEME):
        return retry_duplicate_rpc(function)
    if session not in _met:
        checks = connection_checks(_needed(session))
        Monitor(checks, _PATIENCE_SECS, distributed.say, _EVERY_SECS).wait()
        _met.add(session)
    return run_with_watchdog(lambda: retry_duplicate_rpc(function), lambda: _miss(session))


def closed(session: Any, close: Callable[[], None]) -> None:
    """Closes a session without waiting for lost tasks."""
    if _target(session).startswith(_SCHEME):
        close_session(close)
    else:
        close()


@contextlib.contextmanager
def saying(what: str) -> Iterator[None]:
    """Logs periodically, while the body runs, what it waits for."""
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
    return str(distributed.text(session.sess_str or ""))


def _needed(session: Any) -> dict[str, str]:
    """Returns the addresses, by name, of the tasks that a session needs to open."""
    task = distributed.task()
    if task is None or not distributed.is_own(_target(session)):
        return {_SERVER: _target(session)[len(_SCHEME) :]}
    # TensorFlow merges the device filters of server and session.
    filters = [*task.filters, *session._config.device_filters]
    places = [tf1.DeviceSpec.from_string(text) for text in filters]
    return {
        f"/job:{job}/task:{index}": address
        for job, index, address in task.others()
        if not places
        or any(place.job in (None, job) and place.task in (None, index) for place in places)
    }


def _miss(session: Any) -> None:
    """Raises a PeerError if a task that runs part of the session's graph cannot be reached."""
    needed = _needed(session)
    devices = {operation.device for operation in session.graph.get_operations()}
    places = [tf1.DeviceSpec.from_string(device) for device in devices if device]
    parts = {f"/job:{place.job}/task:{place.task or 0}" for place in places}
    named = {name: a for name, a in needed.items() if name in parts or name == _SERVER}
    for name in unanswered(named):
        raise PeerError(f"lost {name} at {named[name]}; start all tasks again")
