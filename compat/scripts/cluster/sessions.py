"""Makes sessions of a script poll for the chief sooner, and wait only for the tasks they need.

In TensorFlow a worker polls every 30 seconds whether the chief has initialized the variables, and a
session waits for every task of the cluster, forever if one has already exited.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import Any, Callable

from compat._tensorflow import tf1
from compat.scripts.cluster import distributed, peers

_DEFAULT_SECS = 30
_SECS = 1


def install() -> None:
    """Patches the sessions of this process."""
    manager = tf1.train.SessionManager
    _wrap(manager, "__init__", _poll_often)
    for name in ("prepare_session", "recover_session", "wait_for_session"):
        setattr(manager, name, _with_filters(getattr(manager, name)))
    for kind in (tf1.Session, tf1.InteractiveSession):
        _wrap(kind, "run", peers.called)
        _wrap(kind, "make_callable", _called_by_callable)
        _wrap(kind, "close", peers.closed)
        _wrap(kind, "__del__", _unless_python_ends)
    _quiet_cancelled_queues()


def _wrap(kind: Any, name: str, wrapper: Callable[[Any, Callable[[], Any]], Any]) -> None:
    """Makes a method call `wrapper` with its owner and with the original call."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(self, lambda: method(self, *args, **kwargs))

    setattr(kind, name, wrapped)


def _poll_often(manager: Any, init: Callable[[], None]) -> None:
    init()
    if manager._recovery_wait_secs == _DEFAULT_SECS:
        manager._recovery_wait_secs = _SECS


def _called_by_callable(session: Any, make: Callable[[], Callable[..., Any]]) -> Any:
    """Returns what `make_callable` does, which queue runners call to enqueue."""
    call = make()
    return lambda *given: peers.called(session, lambda: call(*given))


def _unless_python_ends(session: Any, destroy: Callable[[], None]) -> None:
    """Destroys a session, but not at interpreter exit.

    TensorFlow closes the session and waits for pending calls, of which those of queue runners no
    longer return.
    """
    if not sys.is_finalizing():
        destroy()


def _quiet_cancelled_queues() -> None:
    """Suppresses errors about cancelled queues, which closing a session causes."""
    before = getattr(threading, "excepthook", None)  # Since Python 3.8.

    def hook(failure: Any) -> None:
        name = failure.thread.name if failure.thread else ""
        cancelled = issubclass(failure.exc_type, tf1.errors.CancelledError)
        if before is not None and not (cancelled and name.startswith("QueueRunnerThread")):
            before(failure)

    if before is not None:
        threading.excepthook = hook


def _with_filters(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that creates sessions on those tasks only that run part of the graph."""

    @functools.wraps(method)
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs["config"] = _filtered(kwargs.get("config"), self._graph)
        if method.__name__ != "wait_for_session":
            return _patiently(lambda: method(self, *args, **kwargs))
        with peers.saying("the chief, which prepares the session"):
            return _patiently(lambda: method(self, *args, **kwargs))

    return make


def _patiently(function: Callable[[], Any]) -> Any:
    """Calls `function`, again as long as peers cannot reach each other; returns its result.

    After a failed connection, gRPC does not try again for some seconds.
    """
    deadline = time.monotonic() + _DEFAULT_SECS
    while True:
        try:
            return function()
        except tf1.errors.UnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_SECS)


def _filtered(config: Any, graph: Any) -> Any:
    """Returns a session's `ConfigProto`, which may be None, with device filters if possible.

    A graph with parts on other workers needs all tasks.
    """
    task = distributed.task()
    if task is None or (config is not None and config.device_filters):
        return config
    for operation in graph.get_operations():
        place = tf1.DeviceSpec.from_string(operation.device) if operation.device else None
        if place is None or place.job in (None, "ps", "localhost"):
            continue
        if (place.job, place.task) != (task.job, task.index):
            return config
    changed = tf1.ConfigProto()
    if config is not None:
        changed.CopyFrom(config)
    changed.device_filters.extend(["/job:ps", f"/job:{task.job}/task:{task.index}"])
    return changed
