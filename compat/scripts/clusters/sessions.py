"""Makes sessions of a script poll for the chief more often, and wait only for tasks that they need.

In TensorFlow a worker polls every 30 seconds for the chief, and a session waits, silently, for
every task of the cluster, forever if one has exited. With this module a session logs the tasks
that it waits for, and reports lost tasks.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import weakref
from typing import Any, Callable, Iterator, Sequence

from compat._tensorflow import private, tf1
from compat.cluster.liveness.departures import updates_together
from compat.cluster.liveness.diagnosis import unanswered
from compat.cluster.liveness.monitor import Monitor, connection_checks
from compat.cluster.liveness.probe import reason_not_serving
from compat.cluster.liveness.watchdog import (
    close_session,
    fill_queue,
    retry_duplicate_rpc,
    run_with_watchdog,
)
from compat.errors import PeerError
from compat.runtime.graphs import session as graphs
from compat.runtime.graphs.device_placement import filtered, named_tasks
from compat.scripts.clusters import distributed, unplaced

_DEFAULT_SECS = 30
_SECS = 1
_PATIENCE_SECS = 7200.0  # TensorFlow's default for a session.
_EVERY_SECS = 10.0
_SCHEME = "grpc://"
_SERVER = "the server"  # The name of an address to which a client outside of the cluster connects.

# Sessions whose peers have all been reached.
_met: weakref.WeakSet[Any] = weakref.WeakSet()


def install() -> None:
    """Makes the sessions of this process poll more often, and report waits and lost tasks."""
    manager = tf1.train.SessionManager
    _wrap(manager, "__init__", _poll_often)
    for name in ("prepare_session", "recover_session", "wait_for_session"):
        setattr(manager, name, _with_filters(getattr(manager, name)))
    for kind in (tf1.Session, tf1.InteractiveSession):
        _wrap(kind, "run", _called)
        _wrap(kind, "make_callable", _called_by_callable)
        _wrap(kind, "close", _closed)
        _wrap(kind, "__del__", _unless_python_ends)


def _wrap(kind: Any, name: str, wrapper: Callable[[Any, Callable[[], Any]], Any]) -> None:
    """Replaces the method `name` of a class: each call calls `wrapper(self, original_call)`."""
    original = vars(kind).get(name)

    @functools.wraps(getattr(kind, name))
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Inherited methods are looked up at each call, since other modules may replace them later.
        method = original.__get__(self) if original else getattr(super(kind, self), name)
        return wrapper(self, lambda: method(*args, **kwargs))

    setattr(kind, name, wrapped)


def _poll_often(manager: Any, init: Callable[[], None]) -> None:
    init()
    private.poll_every(manager, _DEFAULT_SECS, _SECS)


def _called_by_callable(session: Any, make: Callable[[], Callable[..., Any]]) -> Any:
    _place_in(session)
    call = make()

    def called(*arguments: Any) -> Any:
        return fill_queue(session, lambda: _called(session, lambda: call(*arguments)))

    return called


def _unless_python_ends(
    session: Any,
    destroy: Callable[[], None],
    # Bound here: at exit, Python unsets the name `sys` as well.
    is_finalizing: Callable[[], bool] = sys.is_finalizing,
) -> None:
    """Destroys a session, except at interpreter exit, where pending calls no longer return."""
    if not is_finalizing():
        destroy()


def _with_filters(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that creates sessions only on the tasks that run part of the graph."""

    @functools.wraps(method)
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        if distributed.task is not None:
            config = kwargs.get("config")
            _place(self._graph, [] if config is None else config.device_filters)
            kwargs["config"] = filtered(config, distributed.task.name, self._graph)
        if method.__name__ != "wait_for_session":
            return _patiently(lambda: method(self, *args, **kwargs))
        with _saying("the chief, which prepares the session"):
            return _patiently(lambda: method(self, *args, **kwargs))

    return make


def _patiently(function: Callable[[], Any]) -> Any:
    """Calls `function`, repeatedly while peers cannot reach each other yet; returns its result."""
    deadline = time.monotonic() + _DEFAULT_SECS
    while True:
        try:
            return function()
        except tf1.errors.UnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_SECS)


def _called(session: Any, function: Callable[[], Any]) -> Any:
    """Runs a call of a session; logs tasks that are missing, raises a PeerError for lost ones."""
    if not _target(session).startswith(_SCHEME):
        return retry_duplicate_rpc(function)
    if session not in _met:
        checks = connection_checks(_needed(session))
        Monitor(checks, _PATIENCE_SECS, distributed.say, _EVERY_SECS).wait()
        _met.add(session)
    _place_in(session)
    return run_with_watchdog(lambda: retry_duplicate_rpc(function), _monitor(session))


def _closed(session: Any, close: Callable[[], None]) -> None:
    """Closes a session without waiting for ever for a lost task."""
    if _target(session).startswith(_SCHEME):
        close_session(close)
    else:
        close()


@contextlib.contextmanager
def _saying(what: str) -> Iterator[None]:
    """Logs `what` periodically, as the reason to wait, while the body runs."""
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
    """Returns the addresses, by task name, of the tasks that must be up for a session to open."""
    task = distributed.task
    if task is None or _target(session) not in distributed.own_targets:
        return {_SERVER: _target(session)[len(_SCHEME) :]}
    if graphs.is_installed():  # Sessions of the modern runtime run nothing on other workers.
        return _others(lambda job, _: job == "ps")
    return _others(_seen_through(private.device_filters(session)))


def _others(needs: Callable[[str, int], bool]) -> dict[str, str]:
    """Returns the addresses, by name, of the other tasks of the cluster that `needs` chooses."""
    task = distributed.task
    return {
        f"/job:{job}/task:{index}": address
        for job, index, address in (() if task is None else task.others())
        if needs(job, index)
    }


def _seen_through(filters: Sequence[str]) -> Callable[[str, int], bool]:
    """Returns a function `(job, index)`: whether a session with these filters sees the task.

    TensorFlow merges the filters of the server with those of the session.
    """
    task = distributed.task
    merged = [*(task.filters if task else ()), *filters]
    places = [tf1.DeviceSpec.from_string(text) for text in merged]
    return lambda job, index: (
        not places
        or any(place.job in (None, job) and place.task in (None, index) for place in places)
    )


def _place_in(session: Any) -> None:
    if _target(session) in distributed.own_targets:
        _place(session.graph, private.device_filters(session))


def _place(graph: Any, filters: Sequence[str]) -> None:
    """Calls `unplaced.place` on a graph, if this process serves a task of a cluster."""
    task = distributed.task
    if task is None:
        return
    sees = _seen_through(filters)
    tasks = [(job, index) for job, index, _ in task.others() if sees(job, index)]
    unplaced.place(
        graph,
        [
            tf1.DeviceSpec(job=job, replica=0, task=index)
            for job, index in [(task.job, task.index), *tasks]
        ],
    )


def _monitor(session: Any) -> Callable[[], None]:
    """Returns a function to poll during a call of a session.

    It raises a PeerError if a task that runs part of the session's graph cannot be reached, and
    logs which synchronous replica is not there, since the others wait for its gradients.
    """
    replicas: Monitor | None = None  # Created by the first poll, since most calls return at once.

    def poll() -> None:
        nonlocal replicas
        _miss(session)
        if replicas is None:
            together = updates_together(session.graph)
            trainers = _others(lambda job, _: together and job != "ps")
            checks = connection_checks(trainers, reason_not_serving)
            replicas = Monitor(checks, _PATIENCE_SECS, distributed.say, _EVERY_SECS)
        replicas.poll()

    return poll


def _miss(session: Any) -> None:
    """Raises a PeerError if a task that runs part of the session's graph cannot be reached."""
    needed = _needed(session)
    parts = set(needed)
    if not graphs.is_installed():
        parts = named_tasks(session.graph, distributed.task.name if distributed.task else "")
    named = {name: a for name, a in needed.items() if name in parts or name == _SERVER}
    for name in unanswered(named):
        raise PeerError(f"lost {name} at {named[name]}; start all tasks again")
