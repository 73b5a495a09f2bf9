"""Waits for peers and monitors them, by checks that run in parallel, with a timeout.

Example:
  >>> monitor = Monitor(connection_checks({"/job:ps/task:0": "h0:2222"}), timeout=60)
  >>> monitor.wait()  # Returns when the peer is there; reports the peers that are missing.
  >>> while working():
  ...     monitor.poll()  # Raises a `PeerError` if the peer is away for the timeout.
"""

from __future__ import annotations

import functools
import time
from typing import Callable, Mapping, Optional, TypeVar

from compat.cluster.liveness.probe import reason_unreachable
from compat.cluster.liveness.watchdog import submit
from compat.errors import PeerError

# A function that returns why a peer is not there, in a word or two; None if it is there.
Check = Callable[[], Optional[str]]
Key = TypeVar("Key")
Value = TypeVar("Value")

_REMEDIES = {
    "refused": "start the task there, or correct its port",
    "no route": "check its host and the network",
    "name unknown": "correct its host name",
    "timed out": "check its host and the firewall",
    "not TensorFlow": "start the task there, or correct its port",
    "no answer": "see whether it is stopped or another program, or correct its port",
    "other cluster": "give all tasks the same hosts and the same run token",
    "no input yet": "see what its input_fn waits for; each task calls train_and_evaluate",
    "no change": "start its chief, and then this task",
}
_PAUSE_SECS = 0.2


def side_by_side(calls: Mapping[Key, Callable[[], Value]]) -> dict[Key, Value]:
    """Makes calls in parallel, since each may wait for a host; returns their results."""
    if len(calls) < 2:  # Most clusters need a single call, and so no thread.
        return {key: call() for key, call in calls.items()}
    outcomes = {key: submit(call) for key, call in calls.items()}
    return {key: outcome.result() for key, outcome in outcomes.items()}


def run_checks(checks: Mapping[Key, Check]) -> dict[Key, str]:
    """Runs checks in parallel; returns the reason of each that failed: why its peer is missing."""
    reasons = side_by_side(checks)
    return {key: reason for key, reason in reasons.items() if reason is not None}


def connection_checks(
    addresses: Mapping[str, str], reason: Callable[[str], str | None] = reason_unreachable
) -> dict[str, Check]:
    """Returns checks that test by `reason` whether the ports of tasks accept connections.

    `addresses` maps the names of tasks to addresses. The keys of the result are "NAME at ADDRESS".
    """
    return {
        f"{name} at {address}": functools.partial(reason, address)
        for name, address in addresses.items()
    }


class Monitor:
    """Reports which peers are not there, and gives up peers that are away for too long.

    Peers are written "/job:ps/task:0 at host:port". Times are in seconds; `every` is the time
    between two reports, and between two polls. `error` is the class of the error for peers that are
    given up. `missing` has the reasons of the last poll, by peer.
    """

    def __init__(
        self,
        checks: Mapping[str, Check],
        timeout: float,
        report: Callable[[str], object] = print,
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        error: type[PeerError] = PeerError,
    ) -> None:
        self._checks, self._timeout, self._report = dict(checks), timeout, report
        self._error = error
        self._every, self._clock = every, clock
        self._polled = clock()
        self._seen = dict.fromkeys(self._checks, self._polled)
        self.missing: dict[str, str] = {}

    def poll(self) -> None:
        """Runs the checks if they are due; raises `PeerError` if a peer was away for too long."""
        now, missed = self._clock(), self.missing
        if now - self._polled < min(self._every, self._timeout):
            return
        self._polled, self.missing = now, run_checks(self._checks)
        for peer in [peer for peer in self._checks if peer not in self.missing]:
            if peer in missed:
                self._report(f"{peer} is there after {now - self._seen[peer]:.0f} s")
            self._seen[peer] = now
        away = {peer: now - self._seen[peer] for peer in self.missing}
        # A peer has to be missing twice in a row, since it may be busy once, or this process may
        # not have polled for long.
        self._give_up([p for p in away if p in missed and away[p] >= self._timeout])
        self._report_missing(away)

    def wait(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Returns when each peer has been there once; raises `PeerError` after the timeout."""
        start = reported = self._clock()
        checks = self._checks
        while True:
            self.missing = run_checks(checks)
            checks = {peer: checks[peer] for peer in self.missing}
            now = self._clock()
            if not checks:
                break
            if now - start >= self._timeout:
                self._give_up(list(checks))
            if now - reported >= self._every:
                reported = now
                self._report_missing(dict.fromkeys(checks, now - start))
            sleep(_PAUSE_SECS)
        if reported > start:
            self._report(f"all {len(self._checks)} peers are there after {now - start:.0f} s")
        self._seen = dict.fromkeys(self._checks, now)

    def _report_missing(self, away: Mapping[str, float]) -> None:
        for peer, secs in away.items():
            reason = f"{self.missing[peer]} ({secs:.0f} of {self._timeout:.0f} s)"
            self._report(f"waiting for {peer}: {reason}")

    def _give_up(self, peers: list[str]) -> None:
        if not peers:
            return
        reasons = {peer: self.missing[peer] for peer in peers}
        each = (f"{p}: {why}, {_REMEDIES.get(why, 'check its host')}" for p, why in reasons.items())
        raise self._error(f"no connection within {self._timeout:g} s to {'; '.join(each)}")
