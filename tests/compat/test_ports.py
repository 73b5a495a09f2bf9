from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from compat.cluster import ports
from compat.errors import UserError

DEADLINE_SECS = 60

# Takes over the reservation of port argv[1] as a server does, and serves one connection.
SERVER = """
import socket, sys
from compat.cluster import ports
port = int(sys.argv[1])
try:
    ports.check_free(f"localhost:{port}")
except Exception as error:
    print(error, flush=True)
sys.stdin.readline()
ports.release_inherited(port)
ports.check_free(f"localhost:{port}")
with socket.socket() as server:
    server.bind(("", port))
    server.listen()
    print("serving", flush=True)
    server.accept()[0].close()
"""


def bind(port: int, *options: int, host: str = "") -> socket.socket:
    """Binds `port` with the given socket options on, and listens."""
    server = socket.socket()
    try:
        for option in options:
            server.setsockopt(socket.SOL_SOCKET, option, 1)
        server.bind((host, port))
        server.listen()
    except OSError:
        server.close()
        raise
    return server


@pytest.mark.parametrize("options", [(), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,)], ids=str)
@pytest.mark.parametrize("host", ["", "127.0.0.1", "127.0.0.2"])
def test_nobody_else_gets_a_reserved_port(host: str, options: tuple[int, ...]) -> None:
    with ports.reserve() as reservation, pytest.raises(OSError, match="in use"):
        bind(reservation.port, *options, host=host)


linux = pytest.mark.skipif(sys.platform != "linux", reason="only there a port can be shared")
IP_LOCAL_PORT_RANGE = 51  # Of Linux 6.3; not in Python's module.


@linux
def test_a_shared_port_is_a_servers_and_nobody_elses() -> None:
    with ports.reserve() as reservation:
        assert reservation.share()
        for _ in range(3):  # As if the server died, and were started again.
            for options in ((), (socket.SO_REUSEPORT,)):
                with pytest.raises(OSError, match="in use"):
                    bind(reservation.port, *options)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", reservation.port), DEADLINE_SECS)
            ports.check_free(reservation.address)
            with bind(reservation.port, socket.SO_REUSEADDR) as server:
                for _ in range(100):
                    with socket.create_connection(server.getsockname(), DEADLINE_SECS) as client:
                        server.accept()[0].close()
                        assert client.recv(1) == b""
                with pytest.raises(OSError, match="in use"):
                    bind(reservation.port, socket.SO_REUSEADDR)


@linux
def test_the_kernel_chooses_a_shared_port_for_nobody() -> None:
    def choose(chooser: socket.socket, port: int) -> None:
        """Has the kernel choose from a single port, for a server and for a client."""
        chooser.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        limits = struct.pack("=HH", port, port)
        try:
            chooser.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, limits)
        except OSError:
            pytest.skip("this kernel chooses from all ports")

    with ports.reserve() as reservation, bind(0, host="127.0.0.1") as other:
        assert reservation.share()
        with socket.socket() as server, pytest.raises(OSError, match="in use"):
            choose(server, reservation.port)
            server.bind(("", 0))
        with socket.socket() as client, pytest.raises(OSError, match="Cannot assign"):
            choose(client, reservation.port)
            client.connect(other.getsockname())
        reservation.release()
        with socket.socket() as client:  # So it was that which kept them off.
            choose(client, reservation.port)
            client.connect(other.getsockname())


def test_a_reserved_port_cannot_be_connected_to() -> None:
    with ports.reserve() as reservation, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", reservation.port), DEADLINE_SECS)


def test_reserved_ports_differ() -> None:
    reservations = [ports.reserve() for _ in range(50)]
    assert len({reservation.port for reservation in reservations}) == 50
    assert reservations[0].address == f"127.0.0.1:{reservations[0].port}"
    for reservation in reservations:
        reservation.release()
        reservation.release()


def test_a_released_port_can_be_had_at_once_again_and_again() -> None:
    for _ in range(50):
        with ports.reserve() as reservation:
            pass
        ports.check_free(reservation.address)
        bind(reservation.port).close()


def test_the_child_takes_the_port_over() -> None:
    with ports.reserve() as reservation:
        env, pass_fds = reservation.pass_to_child()
        child = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(reservation.port)],
            env={**os.environ, **env},
            pass_fds=pass_fds,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        assert "is in use on this machine" in child.stdout.readline()
        with pytest.raises(OSError, match="in use"):  # We let go of it, the child has not yet.
            bind(reservation.port, socket.SO_REUSEADDR)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "serving\n"
        with socket.create_connection(("127.0.0.1", reservation.port), DEADLINE_SECS) as client:
            assert client.recv(1) == b""
        assert child.wait(DEADLINE_SECS) == 0
    finally:
        child.kill()
        child.communicate(timeout=DEADLINE_SECS)


def test_only_the_named_port_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    with ports.reserve() as one, ports.reserve() as two:
        entries = [r.pass_to_child() for r in (one, two)]
        # As a child has them, descriptors of its own.
        kept, given = (os.dup(pass_fds[0]) for _, pass_fds in entries)
        name = next(iter(entries[0][0]))
        monkeypatch.setenv(name, f"{one.port}:{kept},{two.port}:{given}")
    ports.release_inherited(two.port)
    bind(two.port).close()
    with pytest.raises(OSError, match="in use"):
        bind(one.port)
    assert os.environ[name] == f"{one.port}:{kept}"
    ports.release_inherited(two.port)
    ports.release_inherited(one.port)
    bind(one.port).close()
    assert name not in os.environ


def test_a_descriptor_that_is_something_else_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a grandchild, which has the environment but not the socket."""
    reading, writing = os.pipe()
    with ports.reserve() as reservation, bind(0) as server:  # Two numbers that differ.
        name = next(iter(reservation.pass_to_child()[0]))
        reservation.release()
        for descriptor in (reading, server.fileno(), 10**6):
            monkeypatch.setenv(name, f"{reservation.port}:{descriptor}")
            ports.release_inherited(reservation.port)
        os.write(writing, b"open")
        assert os.read(reading, 4) == b"open"
        assert server.getsockname()[1] != reservation.port
    os.close(reading)
    os.close(writing)


def test_without_a_reservation_nothing_is_released() -> None:
    ports.release_inherited(2222)


def listens(port: int) -> list[str]:
    """Returns at which addresses, as the kernel's table has them, somebody listens on a port."""
    found = []
    for table in Path("/proc/net").glob("tcp*"):  # Of version 6 as well, where there is one.
        for line in table.read_text().splitlines()[1:]:
            place, state = line.split()[1], line.split()[3]
            if place.endswith(f":{port:04X}") and state == "0A":
                found.append(place.split(":")[0])
    return found


def has_version_6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


@linux
@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", socket.inet_aton("127.0.0.1")),
        ("127.0.0.2", socket.inet_aton("127.0.0.2")),
        ("localhost", socket.inet_aton("127.0.0.1")),
        ("192.0.2.1", socket.inet_aton("0.0.0.0")),  # Kept for examples: no machine's.
        ("pc-01.invalid", socket.inet_aton("0.0.0.0")),
        ("[::1]", socket.inet_pton(socket.AF_INET6, "::1")),
        ("[2001:db8::1]", bytes(16)),  # The same.
    ],
)
def test_a_task_that_waits_is_met_at_its_address_alone(host: str, expected: bytes) -> None:
    if len(expected) == 16 and not has_version_6():
        pytest.skip("this machine has no address ::1")
    with ports.reserve() as reservation:
        port = reservation.port
    words = struct.unpack(f"={len(expected) // 4}I", expected)
    with ports.answered(f"{host}:{port}", b"here"):
        assert listens(port) == ["".join(f"{word:08X}" for word in words)]
        caller = {"127.0.0.2": "127.0.0.2", "[::1]": "::1"}.get(host, "127.0.0.1")
        caller = "::1" if "db8" in host else caller
        with socket.create_connection((caller, port), DEADLINE_SECS) as connection:
            assert connection.recv(4) == b"here"
    assert listens(port) == []


def test_a_port_in_use() -> None:
    # Also with SO_REUSEPORT, by which a second server would start and get half of the calls.
    with bind(0, socket.SO_REUSEPORT) as server:
        port = server.getsockname()[1]
        with pytest.raises(UserError) as caught:
            ports.check_free(f"pc:{port}")
        assert str(caught.value) == (
            f"port {port} of pc:{port} is in use on this machine; "
            "stop the process or choose another port"
        )


def test_connections_of_an_earlier_server_are_no_hindrance() -> None:
    with bind(0, socket.SO_REUSEADDR) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), DEADLINE_SECS):
            server.accept()[0].close()  # The server closes first: TIME_WAIT is on its side.
    with pytest.raises(OSError, match="in use"):
        bind(port)
    ports.check_free(f"pc:{port}")


def test_a_malformed_address() -> None:
    with pytest.raises(UserError, match="^address 'pc' has no port"):
        ports.check_free("pc")
