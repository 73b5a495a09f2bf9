"""The process that loads TensorFlow, and forks a program from itself for each request.

`compat.processes.forking.ForkServer` starts it, and describes the requests. It never opens a
server, a session or a thread, and refuses to fork if a library has started a thread.

A program that was forked can request further ones, through `connect`, until it ends.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import gc
import io
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
from typing import Any

from compat.processes import stop_signals

# Above the descriptors that are passed to programs; half of the usual limit.
_HIGH = 512
_MOST_DESCRIPTORS = 64
_LARGEST_REQUEST = 1 << 18
# The fields of `/proc/PID/stat` with the first and last address of the command line; see proc(5).
_ARG_START, _ARG_END = 47, 48
# In a forked program: the modules that its server had loaded, the initial environment of the
# program, and the address of the server.
preloaded: frozenset[str] = frozenset()
environment: dict[str, str] = {}
_entrance: socket.socket | None = None


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Returns one message and its descriptors; the message is None at the end."""
    descriptors = array.array("i")
    space = socket.CMSG_LEN(_MOST_DESCRIPTORS * descriptors.itemsize)
    data, ancillary, _, _ = connection.recvmsg(_LARGEST_REQUEST, space)
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            whole = len(payload) - len(payload) % descriptors.itemsize
            descriptors.frombytes(payload[:whole])
    return (json.loads(data.decode()) if data else None), list(descriptors)


def send(connection: socket.socket, message: Any, descriptors: tuple[int, ...] = ()) -> None:
    """Sends one message, and copies of the descriptors."""
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
    connection.sendmsg([json.dumps(message).encode()], [rights] if descriptors else [])


def connect() -> socket.socket:
    """Returns a connection to the server that has forked this process."""
    assert _entrance is not None
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        send(_entrance, {}, (its.fileno(),))
    return ours


def main() -> None:
    """Loads the requested modules, and forks until the other end of the socket is closed."""
    global preloaded, environment
    number, *modules = sys.argv[1].split(",")
    connection = socket.socket(fileno=fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, _HIGH))
    os.close(int(number))
    initial = dict(os.environ)
    for module in modules:
        __import__(module)
    from compat._tensorflow import tf1

    tf1.logging.get_verbosity()  # The first access to an attribute loads TensorFlow.
    added = {name: value for name, value in os.environ.items() if name not in initial}
    # Otherwise each program's garbage collection, also the one at its exit, visits and so copies
    # all of TensorFlow's objects, which takes up to 2 s of a core.
    gc.freeze()
    request, descriptors = _serve(connection)
    request["env"] = {**added, **request["env"]}  # TensorFlow sets variables while it loads.
    _become(request, descriptors)
    preloaded, environment = frozenset(modules), dict(os.environ)
    _run(request["argv"])


def _serve(connection: socket.socket) -> tuple[Any, list[int]]:  # noqa: C901
    """Answers requests forever; returns only in a forked process, with its request."""
    global _entrance
    wake, woken = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _HIGH) for end in os.pipe())
    door, _entrance = map(_raised, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    os.closerange(3, _HIGH)  # Programs get their descriptors at these numbers.
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    clients = [connection]
    owners: dict[int, socket.socket] = {}
    while True:
        watched: list[Any] = [wake, door, *clients]
        ready = select.select(watched, [], [])[0]
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            _report_ended(owners)
        if door in ready:
            (descriptor,) = receive(door)[1]
            clients.append(_raised(socket.socket(fileno=descriptor)))
        for client in [client for client in clients if client in ready]:
            request: Any = None
            descriptors: list[int] = []
            with contextlib.suppress(ConnectionError):  # The peer left messages unread.
                request, descriptors = receive(client)
            if request is None:
                if client is connection:
                    os._exit(0)
                clients.remove(client)
                client.close()
                continue
            threads = _threads()
            pid = os.fork() if threads == 1 else None
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for used in (wake, woken, door.detach(), *(end.detach() for end in clients)):
                    os.close(used)
                return request, descriptors
            for descriptor in descriptors:
                os.close(descriptor)
            if pid:
                owners[pid] = client
            with contextlib.suppress(OSError):  # The requesting process has ended.
                send(client, {"started": pid} if pid else {"refused": f"{threads} threads"})


def _raised(end: socket.socket) -> socket.socket:
    """Moves a socket to a descriptor above those that programs get, and returns it."""
    with end:
        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _HIGH))


def _report_ended(owners: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        with contextlib.suppress(OSError):  # The requesting process has ended.
            send(owners.pop(pid), {"ended": pid, "code": code})


def _threads() -> int:
    """Counts this process's threads, including those of libraries; a fork keeps only one."""
    return len(os.listdir("/proc/self/task"))


def _become(request: Any, descriptors: list[int]) -> None:
    """Sets up this forked process as if it had been started as a program."""
    os.setsid()
    if not request["shielded"]:
        stop_signals.unblock()
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, _HIGH) for number in descriptors]
    for number in descriptors:
        os.close(number)
    for number, target in zip(high, request["descriptors"]):
        if target is None:  # The pipe of the watchdog; see `forking.start`.
            os.write(number, b"%d " % os.getpid())
        else:
            os.dup2(number, target)
        os.close(number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    multiprocessing: Any = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        multiprocessing.ORIGINAL_DIR = os.getcwd()  # Spawned children find the script from there.
    os.environ.clear()
    os.environ.update(request["env"])
    _show(request["argv"])
    if os.environ.get("PYTHONUNBUFFERED"):
        _unbuffer()
    random.seed()
    import numpy as np
    import threadpoolctl

    np.random.seed()
    # The server was limited to one thread; `limits=None` would restore only that.
    cores = len(os.sched_getaffinity(0))
    threads = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    threadpoolctl.threadpool_limits(int(threads) if threads.isdigit() else cores, "blas")


def _unbuffer() -> None:
    """Makes the standard streams unbuffered, as `python -u` does."""
    for number, name in enumerate(("stdout", "stderr"), start=1):
        was = getattr(sys, name)
        raw: Any = io.FileIO(number, "wb", closefd=False)
        stream = io.TextIOWrapper(raw, was.encoding, was.errors, write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _show(argv: list[str]) -> None:
    """Overwrites the command line that `ps` shows; the server was started with a long one."""
    import ctypes

    with open("/proc/self/stat", encoding="utf-8") as file:
        fields = ["", "", *file.read().rpartition(")")[2].split()]
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    text = b"\0".join(map(os.fsencode, argv))[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))


def _run(argv: list[str]) -> None:
    """Runs the program of `python ARGV` as the main program of this process."""
    is_module = argv[1] == "-m"
    program = argv[2] if is_module else argv[1]
    sys.argv = argv[2:] if is_module else argv[1:]
    folder = os.getcwd() if is_module else os.path.dirname(os.path.abspath(program))
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    if is_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")
