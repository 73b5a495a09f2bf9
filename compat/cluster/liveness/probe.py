"""Finds out, by plain TCP and without proxies, why no server answers at an address."""

from __future__ import annotations

import errno
import socket
import struct

from compat.cluster.address import split_address

_REASONS = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no route",
    errno.ENETUNREACH: "no route",
    errno.ETIMEDOUT: "timed out",
}
# The first bytes of a client of HTTP/2 (RFC 9113, 3.4): a preface and an empty frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4  # The type of the frame that a server begins with; it is the fourth byte.


def reason_unreachable(address: str, timeout: float = 1.0) -> str | None:
    """Returns why nothing accepts a connection at `address`, in a word or two; None if it does."""
    try:
        with socket.create_connection(split_address(address), timeout) as connection:
            return "refused" if drop_if_own(connection) else None
    except socket.timeout:
        return "timed out"
    except (socket.gaierror, UnicodeError):  # UnicodeError: IDNA cannot encode it.
        return "name unknown"
    except OSError as error:
        return _REASONS.get(error.errno or 0, error.strerror or str(error))


def reason_not_serving(address: str, timeout: float = 1.0) -> str | None:
    """Returns why no server of gRPC greets at `address`, in a word or two; None if one does."""
    reason = reason_unreachable(address, timeout)
    if reason is not None:
        return reason
    reply = read_reply(address, 4, _PREFACE, timeout)
    if reply is None:
        return "no answer"
    return None if reply[3:] == bytes([_SETTINGS]) else "not TensorFlow"


def reason_silent(address: str, timeout: float = 1.0) -> str | None:
    """Returns the reason of `reason_not_serving`, or None if the connection is refused.

    A refused connection is an answer, and shows that the host is not silent.
    """
    reason = reason_not_serving(address, timeout)
    return None if reason == "refused" else reason


def read_reply(address: str, size: int, request: bytes = b"", timeout: float = 1.0) -> bytes | None:
    """Returns the first `size` bytes of the reply to a request, or fewer if no more come.

    None if nothing came in time; no bytes if the other side hung up, or is not there.
    """
    place, reply = split_address(address), b""
    try:
        with socket.create_connection(place, timeout) as connection:
            connection.sendall(request)
            while len(reply) < size:
                part = connection.recv(size - len(reply))
                if not part:
                    break
                reply += part
    except socket.timeout:
        return reply or None
    except OSError:
        pass  # No process listens, or it closed the connection.
    return reply


def drop_if_own(connection: socket.socket) -> bool:
    """Drops a connection of a socket to itself; returns whether it was one.

    If no process listens on a port, the kernel may choose this port for the caller as well, so
    that the socket connects to itself.
    """
    is_own = bool(connection.getsockname() == connection.getpeername())
    if is_own:
        # Without TIME_WAIT, which would keep the port from the server that is to come.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return is_own
