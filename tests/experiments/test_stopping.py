"""Ctrl-C and SIGTERM, at each moment of a training; the signals are real."""

from __future__ import annotations

import os
import signal
import time

import pytest

import experiments.launching.signals as module
from compat.errors import PeerError
from experiments.launching.signals import Stopped, signals

BOTH = pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])


def send(signum: int) -> None:
    os.kill(os.getpid(), signum)


@BOTH
def test_stops_at_once_while_nothing_is_at_stake(signum: int) -> None:
    with signals(), pytest.raises(Stopped) as caught:
        send(signum)
    assert caught.value.exit_code == 128 + signum


@BOTH
def test_takes_note_while_deferred_and_stops_behind(signum: int) -> None:
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


def test_an_error_in_the_body_is_the_one_that_is_told() -> None:
    with signals() as stop, pytest.raises(ValueError), stop.deferred():
        send(signal.SIGTERM)
        raise ValueError


def test_a_peer_that_is_lost_by_then_has_been_asked_to_stop_as_well() -> None:
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


def test_an_error_that_was_made_of_the_stop_is_the_stop() -> None:
    """As C code makes a SystemError of it that calls Python and is interrupted there."""
    with pytest.raises(Stopped) as caught, signals():
        try:
            send(signal.SIGTERM)
        except Stopped as stopped:
            raise SystemError("returned a result with an exception set") from stopped
    assert caught.value.exit_code == 143


def test_gives_up_a_wait_that_goes_on_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECS", 0.2)
    lost = pytest.raises(Stopped, match="no last checkpoint")
    with signals() as stop, lost as caught, stop.deferred():
        stop.give_up(waited=100)  # Nobody has asked for a stop.
        send(signal.SIGTERM)
        stop.give_up(waited=100)  # It may still come to an end.
        time.sleep(0.2)
        stop.give_up(waited=0.1)  # Others have: it goes on.
        stop.give_up(waited=0.2)
    assert (caught.value.exit_code, caught.value.loses) == (143, True)


def test_who_is_needed_lingers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINGER_SECS", 0.2)
    said: list[str] = []
    with signals() as stop, pytest.raises(Stopped) as caught, stop.deferred():
        stop.linger(lambda: False, said.append)  # Nobody has asked for a stop.
        send(signal.SIGTERM)
        for _ in range(2):
            stop.linger(lambda: True, said.append)
        assert said == ["asked to end; serves the chief to its end, for 0.2 s at most"]
        time.sleep(0.2)
        stop.linger(lambda: True, said.append)
    assert (caught.value.exit_code, caught.value.loses) == (143, False)
    with signals() as stop, pytest.raises(Stopped), stop.deferred():
        send(signal.SIGTERM)
        stop.linger(lambda: False, said.append)
    assert len(said) == 1


def test_stops_at_once_again_behind_a_body_that_nobody_interrupted() -> None:
    with signals() as stop:
        with stop.deferred():
            pass
        with pytest.raises(Stopped):
            send(signal.SIGINT)


def test_is_no_exception_that_somebody_could_take_for_a_failure() -> None:
    assert not issubclass(Stopped, Exception)
    assert str(Stopped(signal.SIGTERM)) == "SIGTERM"


def test_earlier_handlers_are_back_in_the_end() -> None:
    before = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]
    with signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)] == before
