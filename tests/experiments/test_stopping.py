"""Signals to stop, at each moment of a run; the signals are real."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest

import experiments.launching.signals as module
from compat.errors import PeerError, Stopped
from experiments.launching.signals import signals

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
EACH = pytest.mark.parametrize("signum", SIGNALS)


def send(signum: int) -> None:
    os.kill(os.getpid(), signum)


@EACH
def test_stops_at_once_outside_deferred(signum: int) -> None:
    with signals(), pytest.raises(Stopped) as caught:
        send(signum)
    assert caught.value.exit_code == 128 + signum


@EACH
def test_stops_after_the_deferred_body(signum: int) -> None:
    done: list[str] = []
    with signals() as stop, pytest.raises(Stopped) as caught:
        assert not stop.requested
        with stop.deferred():
            send(signum)
            assert stop.requested
            done.append("checkpoint")
        done.append("never")
    assert done == ["checkpoint"]
    assert caught.value.exit_code == 128 + signum


@EACH
def test_further_signals_cut_nothing_off(signum: int) -> None:
    done: list[str] = []
    with pytest.raises(Stopped) as caught, signals() as stop:
        try:
            with stop.deferred(is_last=True):
                for _ in range(3):
                    send(signal.SIGTERM)
                send(signum)
                done.append("checkpoint")
        finally:
            send(signal.SIGTERM)
            done.append("record")
    assert done == ["checkpoint", "record"]
    assert caught.value.exit_code == 143


@EACH
def test_what_stops_at_once_is_not_cut_off_either(signum: int) -> None:
    done: list[str] = []
    with pytest.raises(Stopped) as caught, signals():
        try:
            send(signal.SIGTERM)
        finally:
            send(signum)
            done.append("closed")
    assert (done, caught.value.exit_code) == (["closed"], 143)


def test_a_second_interrupt_does_not_wait() -> None:
    with signals() as stop, pytest.raises(Stopped) as caught, stop.deferred():
        send(signal.SIGINT)
        send(signal.SIGTERM)
        send(signal.SIGINT)
        raise AssertionError("not reached")
    assert caught.value.exit_code == 130


def test_a_stop_that_was_swallowed_is_still_requested() -> None:
    """As in a destructor, of which Python ignores what it raises."""
    with signals() as stop, pytest.raises(Stopped):
        with contextlib.suppress(Stopped):
            send(signal.SIGTERM)
        with stop.deferred():
            assert stop.requested


def test_nothing_cuts_off_what_follows_the_last_body() -> None:
    with signals() as stop:
        with stop.deferred(is_last=True):
            pass
        send(signal.SIGTERM)


def test_a_hangup_is_ignored_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals() as stop:
            send(signal.SIGHUP)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_in_the_body_is_raised() -> None:
    with signals() as stop, pytest.raises(ValueError), stop.deferred():
        send(signal.SIGTERM)
        raise ValueError


def test_a_peer_that_is_lost_then_was_asked_to_stop_as_well() -> None:
    def lost(error: BaseException) -> Exception | None:
        return PeerError("lost /job:worker/task:1") if isinstance(error, KeyError) else None

    stopped = pytest.raises(Stopped, match="lost /job:worker/task:1")
    with signals() as stop, stopped as caught, stop.deferred(lost):
        send(signal.SIGTERM)
        raise KeyError
    assert (caught.value.exit_code, caught.value.loses) == (143, True)
    with signals() as stop, pytest.raises(ValueError), stop.deferred(lost):
        send(signal.SIGTERM)
        raise ValueError
    with signals() as stop, pytest.raises(KeyError), stop.deferred(lost):
        raise KeyError


def test_an_error_caused_by_the_stop_is_the_stop() -> None:
    """C code that calls Python, and is interrupted there, raises a SystemError."""
    with pytest.raises(Stopped) as caught, signals():
        try:
            send(signal.SIGTERM)
        except Stopped as stopped:
            raise SystemError("returned a result with an exception set") from stopped
    assert caught.value.exit_code == 143


def test_abandons_a_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECS", 2.0)
    lost = pytest.raises(Stopped, match="no last checkpoint")
    with signals() as stop, lost as caught, stop.deferred():
        stop.give_up(waited=100)  # No stop was requested.
        send(signal.SIGTERM)
        stop.give_up(waited=100)  # It may still finish.
        time.sleep(2)
        stop.give_up(waited=1.0)  # Other tasks have answered.
        stop.give_up(waited=2.0)
    assert (caught.value.exit_code, caught.value.loses) == (143, True)


def test_a_task_that_others_need_lingers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_LINGER_SECS", 2.0)
    with signals() as stop, pytest.raises(Stopped) as caught, stop.deferred():
        stop.linger(lambda: False)  # No stop was requested.
        send(signal.SIGTERM)
        for _ in range(2):
            stop.linger(lambda: True)
        said = capsys.readouterr().out
        assert said == "asked to stop; serves the chief until it exits, for 2 s at most\n"
        time.sleep(2)
        stop.linger(lambda: True)
    assert (caught.value.exit_code, caught.value.loses) == (143, False)
    with signals() as stop, pytest.raises(Stopped), stop.deferred():
        send(signal.SIGTERM)
        stop.linger(lambda: False)
    assert capsys.readouterr().out == ""


def test_stops_at_once_after_a_deferred_body() -> None:
    with signals() as stop:
        with stop.deferred():
            pass
        with pytest.raises(Stopped):
            send(signal.SIGINT)


def test_is_not_an_exception() -> None:
    assert not issubclass(Stopped, Exception)
    assert str(Stopped(signal.SIGTERM)) == "SIGTERM"


def test_restores_the_earlier_handlers() -> None:
    before = [signal.getsignal(signum) for signum in SIGNALS]
    with signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(signum) for signum in SIGNALS] == before
