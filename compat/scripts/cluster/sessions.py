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
    original = manager.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self._recovery_wait_secs == _DEFAULT_SECS:
            self._recovery_wait_secs = _SECS

    manager.__init__ = init
    for kind in (tf1.Session, tf1.InteractiveSession):
        kind.run = _called(kind.run)
        kind.make_callable = _calling(kind.make_callable)
        kind.close = _closed(kind.close)
        kind.__del__ = _unless_python_ends(kind.__del__)
    _quiet_cancelled_queues()
    for name in ("prepare_session", "recover_session", "wait_for_session"):
        setattr(manager, name, _with_filters(getattr(manager, name)))


def _called(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return peers.called(self, lambda: method(self, *args, **kwargs))

    return run


def _calling(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a `make_callable` for sessions; queue runners enqueue with its results."""

    @functools.wraps(method)
    def make(self: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        call = method(self, *args, **kwargs)
        return lambda *given: peers.called(self, lambda: call(*given))

    return make


def _closed(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def close(self: Any) -> None:
        peers.closed(self, lambda: method(self))

    return close


def _unless_python_ends(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a session's destructor that does nothing at interpreter exit.

    TensorFlow's closes the session and waits for pending calls, of which those of queue runners no
    longer return.
    """

    @functools.wraps(method)
    def destroy(self: Any) -> None:
        if not sys.is_finalizing():
            method(self)

    return destroy


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
        kwargs["config"] = filtered(kwargs.get("config"), self._graph)
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


def filtered(config: Any, graph: Any) -> Any:
    """Returns a session's options, with device filters if the graph allows them.

    Args:
      config: a `ConfigProto`, or None.
      graph: the graph to run; one with parts on other workers needs all tasks.
    """
    task = distributed.task()
    if task is None or (config is not None and config.device_filters):
        return config
    own = f"/job:{task.job}/task:{task.index}"
    for operation in graph.get_operations():
        place = tf1.DeviceSpec.from_string(operation.device) if operation.device else None
        if place is None or place.job in (None, "ps", "localhost"):
            continue
        if (place.job, place.task) != (task.job, task.index):
            return config
    changed = tf1.ConfigProto()
    if config is not None:
        changed.CopyFrom(config)
    changed.device_filters.extend(["/job:ps", own])
    return changed
