"""Turns of programs at a server."""

from __future__ import annotations

import threading
import time

import pytest

from compat._tensorflow import tf1
from compat.cluster.liveness import turns


@pytest.fixture(scope="module")
def server() -> dict[str, str]:
    target = tf1.train.Server.create_local_server().target
    text = target.decode() if isinstance(target, bytes) else target
    return {"": text[len("grpc://") :]}  # The job has another name in each release.


def test_one_at_a_time(server: dict[str, str]) -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter(number: int) -> None:
        with turns.taken(server):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.2)
            inside.remove(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


def test_takes_over_from_a_program_that_has_died(server: dict[str, str]) -> None:
    begun = threading.Event()

    def enter_for_ever() -> None:
        with turns.taken(server):
            begun.set()
            threading.Event().wait()

    threading.Thread(target=enter_for_ever, daemon=True).start()
    assert begun.wait(60)
    began = time.monotonic()
    with turns.taken(server, patience=1.0):
        assert time.monotonic() > began + 0.9
    began = time.monotonic()
    with turns.taken(server, patience=60.0):
        assert time.monotonic() < began + 30
