from __future__ import annotations

import contextlib
import functools
import os
import re
import socket
import subprocess
import sys
import threading
import time
from typing import Iterator

import pytest

from compat.cluster import ports
from compat.cluster.address import split_address
from compat.cluster.liveness.monitor import Monitor, connection_checks
from compat.cluster.liveness.probe import drop_if_own, reason_not_serving, reason_unreachable
from compat.errors import PeerError, UserError

DEADLINE_SECS = 60

# Listens on port argv[1], which is kept for it, and waits for the peer at argv[2].
TASK = """
import socket, sys
from compat.cluster import ports
from compat.cluster.liveness.monitor import Monitor, connection_checks
ports.release_inherited(int(sys.argv[1]))
with socket.socket() as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(sys.argv[1])))
    server.listen()
    Monitor(connection_checks({"peer": sys.argv[2]}), timeout=60, report=lambda line: None).wait()
    print("met", flush=True)
    sys.stdin.readline()
"""


class Clock:
    """A clock on which only sleeping takes time."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@contextlib.contextmanager
def listening() -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def overloaded() -> Iterator[str]:
    """A server that leaves new connections without an answer, as a firewall does."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):  # More than wait to be accepted.
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_peers_that_are_there_need_no_word() -> None:
    said: list[str] = []
    with listening() as one, listening() as two:
        peers = connection_checks({"/job:ps/task:0": one, "/job:ps/task:1": two})
        Monitor(peers, DEADLINE_SECS, said.append).wait()
    Monitor({}, DEADLINE_SECS, said.append).wait()
    assert said == []


def test_peers_are_asked_side_by_side() -> None:
    """Each may take long to answer; here none answers before all are asked."""
    asked = threading.Barrier(3, timeout=DEADLINE_SECS)

    def check() -> None:
        asked.wait()

    Monitor(dict.fromkeys(["ps 0", "ps 1", "worker 1"], check), DEADLINE_SECS).wait()


def test_a_peer_that_comes_late() -> None:
    said: list[str] = []
    with ports.reserve() as reservation, listening() as there, socket.socket() as server:

        def say(line: str) -> None:
            said.append(line)
            if len(said) == 1:
                reservation.release()
                server.bind(("127.0.0.1", reservation.port))
                server.listen()

        peers = {"/job:ps/task:0": there, "/job:ps/task:1": reservation.address}
        Monitor(connection_checks(peers), DEADLINE_SECS, say, every=0.4).wait()
    waiting = rf"waiting for /job:ps/task:1 at {reservation.address}: refused \(\d+ of 60 s\)"
    assert re.fullmatch(waiting, said[0])
    assert said[-1].startswith("all 2 peers are there after ")
    assert all(re.fullmatch(waiting, line) for line in said[:-1])


@pytest.mark.parametrize("late", [0, 1])
def test_any_start_order(late: int) -> None:
    reservations = [ports.reserve() for _ in range(2)]
    children = []
    try:
        for mine, other in [(late ^ 1, late), (late, late ^ 1)]:
            argv = [str(reservations[mine].port), reservations[other].address]
            env, pass_fds = reservations[mine].pass_to_child()
            child = subprocess.Popen(
                [sys.executable, "-c", TASK, *argv],
                env={**os.environ, **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=pass_fds,
            )
            reservations[mine].release()
            children.append(child)
            time.sleep(0.5)
        # Each, before one of them exits, and with it the port that the other one looks for.
        assert [child.stdout.readline() for child in children if child.stdout] == [b"met\n"] * 2
        for child in children:
            child.communicate(b"\n", timeout=DEADLINE_SECS)
        assert [child.returncode for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
            child.wait(DEADLINE_SECS)
        for reservation in reservations:
            reservation.release()


@pytest.mark.parametrize("greeting", [b"", b"220 mail\r\n"])
def test_a_port_that_is_not_of_tensorflow(greeting: bytes) -> None:
    """One that is, is waited for by workers that train together."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def greet() -> None:
            for _ in range(2):  # Whether it is there at all is asked first.
                connection, _ = server.accept()
                connection.sendall(greeting)
                connection.close()

        threading.Thread(target=greet, daemon=True).start()
        assert reason_not_serving(address, timeout=DEADLINE_SECS) == "not TensorFlow"
    assert reason_not_serving(address) == "refused"


def test_a_port_that_never_answers() -> None:
    """As that of a task that is stopped; and what is said then, in the end."""
    said: list[str] = []
    clock = Clock()
    with listening() as silent, pytest.raises(PeerError) as caught:
        check = functools.partial(reason_not_serving, silent, timeout=0.02)
        Monitor({f"ps 0 at {silent}": check}, 8.0, said.append, clock=clock).wait(clock.sleep)
    assert said == [f"waiting for ps 0 at {silent}: no answer (5 of 8 s)"]
    assert str(caught.value) == (
        f"no connection within 8 s to ps 0 at {silent}: no answer, see whether it is stopped or "
        "another program, or correct its port"
    )


def test_who_is_away_may_come_back_in_time() -> None:
    said: list[str] = []
    clock = Clock()
    chief = "/job:worker/task:0"
    with ports.reserve() as reservation:
        address = reservation.address
        monitor = Monitor(connection_checks({chief: address}), 12.0, said.append, clock=clock)
        for _ in range(23):
            monitor.poll()
            clock.sleep(0.5)
    waiting = [f"waiting for {chief} at {address}: refused ({n} of 12 s)" for n in (5, 10)]
    assert said == waiting
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", reservation.port))
        server.listen()
        clock.sleep(5.0)
        monitor.poll()
    assert said == [*waiting, f"{chief} at {address} is there after 16 s"]
    clock.sleep(10.0)
    monitor.poll()
    assert said[3:] == [f"waiting for {chief} at {address}: refused (10 of 12 s)"]
    clock.sleep(5.0)
    with pytest.raises(PeerError, match=f"^no connection within 12 s to {chief} at {address}: ref"):
        monitor.poll()


def test_no_peer_is_given_up_by_one_poll() -> None:
    """However long ago the last one was: this process or its machine may have been stopped."""
    said: list[str] = []
    clock = Clock()
    with listening() as address:
        monitor = Monitor(connection_checks({"ps 0": address}), 12.0, said.append, clock=clock)
        clock.sleep(5.0)
        monitor.poll()
        assert not monitor.missing
    clock.sleep(60.0)
    monitor.poll()
    assert monitor.missing
    assert said == [f"waiting for ps 0 at {address}: refused (60 of 12 s)"]
    clock.sleep(5.0)
    with pytest.raises(PeerError, match="^no connection within 12 s to ps 0"):
        monitor.poll()


def test_giving_up() -> None:
    said: list[str] = []
    clock = Clock()
    unknown = "a" * 70 + ":2222"  # Too long to be asked any name server for.
    with ports.reserve() as closed, listening() as there:
        peers = {"ps 0": there, "ps 1": closed.address, "worker 1": unknown}
        with pytest.raises(PeerError) as caught:
            Monitor(connection_checks(peers), 12.0, said.append, clock=clock).wait(clock.sleep)
    assert str(caught.value) == (
        f"no connection within 12 s to ps 1 at {closed.address}: refused, start the task there, "
        f"or correct its port; worker 1 at {unknown}: name unknown, correct its host name"
    )
    assert said == [
        f"waiting for {name} at {peers[name]}: {reason} ({seconds} of 12 s)"
        for seconds in (5, 10)
        for name, reason in (("ps 1", "refused"), ("worker 1", "name unknown"))
    ]


def test_the_timeout_is_kept() -> None:
    start = time.monotonic()
    with ports.reserve() as closed, pytest.raises(PeerError, match="within 0.5 s to ps 0 at"):
        Monitor(connection_checks({"ps 0": closed.address}), timeout=0.5).wait()
    assert 0.5 <= time.monotonic() - start < DEADLINE_SECS


def test_reasons() -> None:
    with listening() as there, ports.reserve() as closed, overloaded() as silent:
        assert reason_unreachable(there) is None
        assert reason_unreachable(closed.address) == "refused"
        assert reason_unreachable(silent, timeout=0.2) == "timed out"
    # No packet leaves the machine: TCP to the broadcast address is refused a route.
    assert reason_unreachable("255.255.255.255:2222") == "no route"
    assert reason_unreachable("a" * 70 + ":2222") == "name unknown"


def test_a_connection_to_itself_is_no_peer() -> None:
    with ports.reserve() as reservation:
        pass
    own = ("127.0.0.1", reservation.port)
    with socket.create_connection(own, DEADLINE_SECS, source_address=own) as connection:
        assert drop_if_own(connection)
    ports.check_free(reservation.address)  # It does not leave the port in TIME_WAIT.
    with listening() as there, socket.create_connection(split_address(there)) as connection:
        assert not drop_if_own(connection)
        connection.send(b"still open")


def test_a_malformed_address_is_not_waited_for() -> None:
    with pytest.raises(UserError, match="^address 'pc' has no port"):
        Monitor(connection_checks({"ps 0": "pc"}), timeout=1).wait()
