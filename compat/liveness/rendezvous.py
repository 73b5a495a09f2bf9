"""Waits for the other tasks of a cluster, started in any order, and logs which are missing.

A peer is there once its port accepts a TCP connection, which is closed at once; a TensorFlow
server takes no notice. It serves once it greets as gRPC does. Proxies play no role for plain TCP.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Mapping

from compat.cluster.address import split_address
from compat.errors import PeerError

_REASONS = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no route",
    errno.ENETUNREACH: "no route",
    errno.ETIMEDOUT: "timed out",
}
_REMEDIES = {
    "refused": "start the task there, or correct its port",
    "no route": "check its host and the network",
    "name unknown": "correct its host name",
    "timed out": "check its host and the firewall",
    "not TensorFlow": "start the task there, or correct its port",
    "no answer": "see whether it is stopped or another program, or correct its port",
    "other cluster": "give all tasks the same hosts and the same run token",
}
# What a client of HTTP/2 begins with (RFC 9113, 3.4): its preface and an empty frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4  # The type of the frame that a server begins with; it is the fourth byte.


def wait_for(
    peers: Mapping[str, str],
    timeout: float = 60.0,
    say: Callable[[str], None] = print,
    every: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    look: Callable[[str, str], str | None] | None = None,
) -> None:
    """Returns when each peer accepts a connection.

    Args:
      peers: task name, as "/job:ps/task:0", to "host:port".
      timeout: seconds to wait before giving up.
      say: told every `every` seconds, a line a peer, for whom is waited and why it is not there.
      every: seconds between two reports; the first comes after that time, too.
      clock: tells the time in seconds.
      sleep: waits for a number of seconds.
      look: told a peer's name and address, returns why it does not do yet, else None; by default
        whether it accepts a connection.

    Raises:
      PeerError: some peers did not come in time; the message names each with the remedy.
      UserError: an address is malformed.
    """
    for address in peers.values():
        split_address(address)
    start = said = clock()
    missing = dict(peers)
    while True:
        reasons = _try_all(missing, look or (lambda _, address: reason_unreachable(address)))
        missing = {name: missing[name] for name in reasons}
        now = clock()
        if not missing:
            if said > start:
                say(f"all {len(peers)} peers are there after {now - start:.0f} s")
            return
        if now - start >= timeout:
            raise PeerError(_complaint(missing, reasons, timeout))
        if now - said >= every:
            said = now
            for name, reason in reasons.items():
                say(_waiting(name, missing[name], reason, now - start, timeout))
        sleep(0.2)


class Lookout:
    """Looks from time to time whether a peer is still there; says when it is not, and gives up.

    Args:
      name: of the peer, as "/job:worker/task:0".
      address: "host:port".
      timeout: seconds for which it may be away.
      say: told while it is away.
      every: seconds between two looks.
      clock: tells the time in seconds.
      look: returns why a peer is not at an address, else None; by default whether it accepts a
        connection.
    """

    def __init__(
        self,
        name: str,
        address: str,
        timeout: float,
        say: Callable[[str], None] = print,
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        look: Callable[[str], str | None] | None = None,
    ) -> None:
        self._name, self._address, self._timeout = name, address, timeout
        self._say, self._every, self._clock = say, every, clock
        self._reason = look or reason_unreachable
        self._there = self._looked = clock()  # Unequal as long as the peer is missed.

    @property
    def misses(self) -> bool:
        """Whether the peer was not there at the last look."""
        return self._there < self._looked

    def look(self) -> None:
        """Looks if it is time to.

        Raises:
          PeerError: the peer was away all the time for which it may be; or since the beginning.
        """
        now = self._clock()
        if now - self._looked < min(self._every, self._timeout):
            return
        was_missed, self._looked = self.misses, now
        reason = self._reason(self._address)
        away = now - self._there
        if reason is None:
            if was_missed:
                self._say(f"{self._name} at {self._address} is there after {away:.0f} s")
            self._there = now
            return
        # Twice in a row, for a peer may be busy once, or it is we who did not look for long.
        if away >= self._timeout and was_missed:
            peer = {self._name: self._address}
            raise PeerError(_complaint(peer, {self._name: reason}, self._timeout))
        self._say(_waiting(self._name, self._address, reason, away, self._timeout))


def reason_unreachable(address: str, timeout: float = 1.0) -> str | None:
    """Returns why nothing accepts a connection at `address`, in a word or two; None if it does.

    Args:
      address: "host:port".
      timeout: seconds, for each address that the host name stands for.

    Raises:
      UserError: `address` is malformed.
    """
    try:
        with socket.create_connection(split_address(address), timeout) as connection:
            return "refused" if drop_if_own(connection) else None
    except socket.timeout:
        return "timed out"
    except (socket.gaierror, UnicodeError):  # The latter for names that IDNA cannot encode.
        return "name unknown"
    except OSError as error:
        return _REASONS.get(error.errno or 0, error.strerror or str(error))


def reason_not_serving(address: str, timeout: float = 1.0) -> str | None:
    """Returns why no server of gRPC greets at `address`, in a word or two; None if one does.

    Args and errors are those of `reason_unreachable`.
    """
    reason = reason_unreachable(address, timeout)
    if reason is not None:
        return reason
    said = answer(address, 4, _PREFACE, timeout)
    if said is None:
        return "no answer"
    return None if said[3:] == bytes([_SETTINGS]) else "not TensorFlow"


def answer(address: str, size: int, call: bytes = b"", timeout: float = 1.0) -> bytes | None:
    """Returns the first `size` bytes that are answered to a call, or fewer if no more come.

    None if nothing came in time; who hangs up, or is not there, has answered with no bytes.

    Args:
      address: "host:port".
      size: in bytes.
      call: what is said first.
      timeout: seconds, for each part of the answer.

    Raises:
      UserError: `address` is malformed.
    """
    place, said = split_address(address), b""
    try:
        with socket.create_connection(place, timeout) as connection:
            connection.sendall(call)
            while len(said) < size:
                part = connection.recv(size - len(said))
                if not part:
                    break
                said += part
    except socket.timeout:
        return said or None
    except OSError:
        pass  # Nobody is there, or it hung up.
    return said


def drop_if_own(connection: socket.socket) -> bool:
    """Drops a connection of a socket to itself; returns whether it was one.

    The kernel may choose as the caller's port the very one that is called, if that is a port of
    this machine, and TCP then connects the socket to itself, though nobody listens.
    """
    own = bool(connection.getsockname() == connection.getpeername())
    if own:
        # Without TIME_WAIT, which would keep the port from the server that is to come.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return own


def _try_all(peers: Mapping[str, str], look: Callable[[str, str], str | None]) -> dict[str, str]:
    """Returns the reasons by name of the peers that are not there; asks all of them at a time."""
    if not peers:
        return {}
    with ThreadPoolExecutor(max_workers=min(32, len(peers))) as pool:
        reasons = pool.map(look, peers.keys(), peers.values())
        return {name: reason for name, reason in zip(peers, reasons) if reason is not None}


def _waiting(name: str, address: str, reason: str, waited: float, timeout: float) -> str:
    return f"waiting for {name} at {address}: {reason} ({waited:.0f} of {timeout:.0f} s)"


def _complaint(missing: Mapping[str, str], reasons: Mapping[str, str], timeout: float) -> str:
    each = "; ".join(
        f"{name} at {missing[name]}: {reason}, {_REMEDIES.get(reason, 'check its host')}"
        for name, reason in reasons.items()
    )
    return f"no connection within {timeout:g} s to {each}"
