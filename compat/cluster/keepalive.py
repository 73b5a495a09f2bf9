"""Breaks TCP connections to unresponsive hosts, so that TensorFlow reports an error.

TensorFlow gives gRPC no option for it. So the sockets under its connections are set, as gRPC itself
would; on Linux, where they can be found.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Container

_DESCRIPTORS = "/proc/self/fd"
_EVERY_SECS = 0.2  # Between two looks for new connections, half a millisecond each.
_PROBES = 4  # Signs of life that are asked for within the timeout.


def begin(ports: Container[int], timeout: float) -> None:
    """Breaks connections to these ports of other hosts, silent for `timeout` s, where it can."""

    def watch() -> None:
        while True:
            for name in os.listdir(_DESCRIPTORS):
                with contextlib.suppress(OSError):  # Closed meanwhile, or without a peer.
                    if os.readlink(os.path.join(_DESCRIPTORS, name)).startswith("socket:"):
                        _limit_if_to(ports, int(name), timeout)
            time.sleep(_EVERY_SECS)

    if os.path.isdir(_DESCRIPTORS) and hasattr(socket, "TCP_USER_TIMEOUT"):
        threading.Thread(target=watch, name="keepalive", daemon=True).start()


def _limit_if_to(ports: Container[int], descriptor: int, timeout: float) -> None:
    found = socket.socket(fileno=descriptor)
    try:
        is_ip = found.family in (socket.AF_INET, socket.AF_INET6)
        if is_ip and found.type == socket.SOCK_STREAM and found.getpeername()[1] in ports:
            pause = max(1, int(timeout / _PROBES))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, pause)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, pause)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * timeout))
    finally:
        found.detach()  # It is another's, who closes it.
