"""SIGINT and SIGTERM at each moment of a run; the signals are real."""

from __future__ import annotations

import os
import signal
import time

import pytest

import experiments.launching.signals as module
from compat.errors import PeerError, Stopped
from experiments.launching.signals import signals

BOTH = pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])


def send(signum: int) -> None:
    os.kill(os.getpid(), signum)


@BOTH
def test_stops_at_once_outside_deferred(signum: int) -> None:
    with signals(), pytest.raises(Stopped) as caught:
        send(signum)
    assert caught.value.exit_code == 128 + signum


@BOTH
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


@BOTH
def test_second_signal_does_not_wait(signum: int) -> None:
    with signals() as stop, pytest.raises(Stopped) as caught, stop.deferred():
        send(signal.SIGTERM)
        send(signum)
        raise AssertionError("not reached")
    assert caught.value.exit_code == 128 + signum


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
    monkeypatch.setattr(module, "_PATIENCE_SECS", 0.2)
    lost = pytest.raises(Stopped, match="no last checkpoint")
    with signals() as stop, lost as caught, stop.deferred():
        stop.give_up(waited=100)  # No stop was requested.
        send(signal.SIGTERM)
        stop.give_up(waited=100)  # It may still finish.
        time.sleep(0.2)
        stop.give_up(waited=0.1)  # Other tasks have answered.
        stop.give_up(waited=0.2)
    assert (caught.value.exit_code, caught.value.loses) == (143, True)


def test_a_task_that_others_need_lingers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_LINGER_SECS", 0.2)
    with signals() as stop, pytest.raises(Stopped) as caught, stop.deferred():
        stop.linger(lambda: False)  # No stop was requested.
        send(signal.SIGTERM)
        for _ in range(2):
            stop.linger(lambda: True)
        said = capsys.readouterr().out
        assert said == "asked to stop; serves the chief until it exits, for 0.2 s at most\n"
        time.sleep(0.2)
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
    before = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]
    with signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)] == before
