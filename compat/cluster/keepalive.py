"""Breaks TCP connections to unresponsive hosts, so that TensorFlow reports an error.

TensorFlow does not let a program configure gRPC's keepalive. So this sets the same options on the
sockets of gRPC's connections, on Linux, where `/proc` lists them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Container

_DESCRIPTORS = "/proc/self/fd"
_EVERY_SECS = 0.2  # Seconds between two scans for new connections; a scan takes 0.5 ms.
_PROBES = 4  # Keepalive probes within the timeout.


def begin(ports: Container[int], timeout: float) -> None:
    """Breaks connections to `ports` of hosts that are silent for `timeout` seconds, on Linux."""

    def watch() -> None:
        while True:
            for name in os.listdir(_DESCRIPTORS):
                with contextlib.suppress(OSError):  # The socket was closed, or has no peer.
                    if os.readlink(os.path.join(_DESCRIPTORS, name)).startswith("socket:"):
                        _limit_if_to(ports, int(name), timeout)
            time.sleep(_EVERY_SECS)

    if os.path.isdir(_DESCRIPTORS) and hasattr(socket, "TCP_USER_TIMEOUT"):
        threading.Thread(target=watch, name="keepalive", daemon=True).start()


def _limit_if_to(ports: Container[int], descriptor: int, timeout: float) -> None:
    connection = socket.socket(fileno=descriptor)
    try:
        is_ip = connection.family in (socket.AF_INET, socket.AF_INET6)
        if is_ip and connection.type == socket.SOCK_STREAM and connection.getpeername()[1] in ports:
            pause = max(1, int(timeout / _PROBES))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, pause)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, pause)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * timeout))
    finally:
        connection.detach()  # gRPC owns the socket, and closes it.
