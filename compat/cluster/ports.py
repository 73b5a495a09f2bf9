"""Reserves ports of this machine for servers that start later.

A launcher reserves a port per task, and passes the bound socket to the task's process, which
releases it right before its server starts, because TensorFlow's servers cannot take over a bound
socket. On Linux a server can also share the port, so the launcher keeps it across restarts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import threading
from typing import Any, ContextManager, Iterator

from compat.cluster.address import split_address
from compat.errors import UserError, reason_of

_VARIABLE = "COMPAT_RESERVED_PORTS"  # "20001:5,20002:6", port and descriptor
_LOOK_SECS = 0.1  # Seconds between two checks whether the server is about to start.


class Reservation(ContextManager["Reservation"]):
    """A free port of this machine, and its `address` on loopback, kept until `release`."""

    def __init__(self) -> None:
        # On all addresses, as TensorFlow's servers listen. The socket does not listen, so no
        # process can connect to it or, without SO_REUSEADDR, bind the port.
        self._socket = socket.socket()
        self._socket.bind(("", 0))
        self.port: int = self._socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def pass_to_child(self) -> tuple[dict[str, str], tuple[int, ...]]:
        """Returns the environment entry and the `pass_fds` that make a child inherit the port.

        The port is free when both processes have released it, so call `release` once the child has
        started.
        """
        descriptor = self._socket.fileno()
        return {_VARIABLE: f"{self.port}:{descriptor}"}, (descriptor,)

    def share(self) -> bool:
        """Lets a server bind the port if it sets SO_REUSEADDR, as TensorFlow's servers do.

        For other processes the port stays reserved. Returns whether sharing is possible, which it
        is only on Linux.
        """
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                server.bind(("", self.port))
                server.listen()
            except OSError:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
                return False
        return True

    def release(self) -> None:
        """Releases the port; further calls do nothing."""
        self._socket.close()

    def __exit__(self, *exception: Any) -> None:
        self.release()


reserve = Reservation


@contextlib.contextmanager
def answered(address: str, greeting: bytes = b"") -> Iterator[None]:
    """Accepts and greets connections at `address`, of this machine, until its server starts."""
    over = threading.Event()

    def greet() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):  # No client came, or it has disconnected.
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(greeting)

    host, port = split_address(address)
    is_ipv6 = ":" in host
    if not is_ipv6 and not re.fullmatch("[0-9.]+", host) and host.lower() != "localhost":
        # Other hosts may resolve a name differently: here this host's name may mean 127.0.1.1.
        host = ""
    with socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            listener.bind(("", port))  # It is not this machine's, as behind NAT.
        listener.listen()
        listener.settimeout(_LOOK_SECS)
        greeter = threading.Thread(target=greet, daemon=True)
        greeter.start()
        try:
            yield
        finally:
            over.set()
            greeter.join()


def release_inherited(port: int) -> None:
    """Releases `port` if this process inherited a reservation of it; else does nothing."""
    kept = []
    for entry in filter(None, os.environ.get(_VARIABLE, "").split(",")):
        if not re.fullmatch("[0-9]{1,9}:[0-9]{1,9}", entry):
            raise UserError(
                f"{_VARIABLE} has {entry!r}, expected PORT:DESCRIPTOR by a launcher; unset it"
            )
        reserved, descriptor = map(int, entry.split(":"))
        if reserved != port:
            kept.append(entry)
            continue
        # A grandchild inherits the variable without the socket, and may use the number for another
        # descriptor.
        with contextlib.suppress(OSError):
            bound = socket.socket(fileno=descriptor)
            if bound.family == socket.AF_INET and bound.getsockname()[1] == port:
                bound.close()
            bound.detach()
    if kept:
        os.environ[_VARIABLE] = ",".join(kept)
    else:
        os.environ.pop(_VARIABLE, None)


def check_free(address: str) -> None:
    """Raises `UserError` if no server can be started on the port of `address`, of this machine."""
    port = split_address(address)[1]
    with socket.socket() as probe:
        # As gRPC does, so that TIME_WAIT connections of an earlier server do not prevent the bind.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            state = "in use on this machine" if in_use else f"not to be had ({reason_of(error)})"
            raise UserError(
                f"port {port} of {address} is {state}; stop the process or choose another port"
            ) from None
