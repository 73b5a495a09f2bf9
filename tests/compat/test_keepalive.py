"""Connections of this process to certain ports get a limit to how long they may be silent."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from typing import Iterator

import pytest

from compat.cluster import keepalive

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sockets are found on Linux"),
]
DEADLINE_SECS = 60.0


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def limit_ms(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


def test_new_connections_to_the_ports_are_found() -> None:
    with listening() as server, listening() as stranger, contextlib.ExitStack() as opened:
        for end in socket.socketpair():  # Whose peers have no ports.
            opened.enter_context(end)
        keepalive.begin([server.getsockname()[1]], 60.0)
        time.sleep(0.5)  # It has looked at the local sockets then, and looks again.
        client, other = (
            opened.enter_context(socket.create_connection(each.getsockname(), DEADLINE_SECS))
            for each in (server, stranger)
        )
        before = len(os.listdir("/proc/self/fd"))
        deadline = time.monotonic() + DEADLINE_SECS
        while limit_ms(client) == 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)  # For a few more looks, which change and keep nothing.
        assert limit_ms(client) == 60000
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
        assert limit_ms(other) == 0
        # One more while it looks itself.
        counts = [len(os.listdir("/proc/self/fd")) for _ in range(20) if not time.sleep(0.01)]
        assert min(counts) <= before
        client.sendall(b"still open")
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(10) == b"still open"
