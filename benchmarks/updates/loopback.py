"""The bytes of an update, down and up, over plain sockets: what no program can be faster than."""

from __future__ import annotations

import socket
import threading

from benchmarks.updates import task
from benchmarks.updates.task import Clock, Task

BYTES = 4 * (784 * 100 + 100 + 100 * 10 + 10)


def serve(address: str) -> None:
    """Sends the variables whenever it is asked to, and receives gradients, of each worker."""
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port))) as server:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=_serve_one, args=(peer,), daemon=True).start()


def _serve_one(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    variables, gradients = bytes(BYTES), bytearray(BYTES)
    while peer.recv(1):
        peer.sendall(variables)
        _receive(peer, gradients)
        peer.sendall(b"\1")  # They are applied.


def _receive(peer: socket.socket, into: bytearray) -> None:
    left = memoryview(into)
    while left:
        left = left[peer.recv_into(left) :]


def exchange(here: Task) -> Clock:
    """Makes this worker's share of the updates."""
    clock, variables, gradients = Clock(), bytearray(BYTES), bytes(BYTES)
    host, _, port = here.cluster["ps"][0].rpartition(":")
    while True:
        try:
            peer = socket.create_connection((host, int(port)))
            break
        except OSError:
            continue
    workers = len(here.cluster["worker"])
    with peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for step in range(0, here.updates + 1, workers):
            peer.sendall(b"\1")
            _receive(peer, variables)
            peer.sendall(gradients)
            peer.recv(1)
            if step >= here.warm_up and (not clock.steps or step + workers > here.updates):
                clock.note(step, 0.0)
    return clock


if __name__ == "__main__":
    own = task.from_command_line()
    if own.job == "ps":
        serve(own.cluster["ps"][0])
    exchange(own).print()
