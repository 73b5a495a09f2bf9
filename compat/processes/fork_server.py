"""The process that has loaded TensorFlow, and forks a program from itself for each request.

Started by `compat.processes.forking.ForkServer`, which describes the requests. It never opens a
server, a session or a thread; a fork is refused where that is not so.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
from typing import Any

# Above the numbers that a program is handed; half of what most systems allow.
_HIGH = 512
_MOST_DESCRIPTORS = 64
_LARGEST_REQUEST = 1 << 18
# Where `/proc/PID/stat` has the addresses at which the command line begins and ends; see proc(5).
_ARG_START, _ARG_END = 47, 48


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Returns one message, with the descriptors that came with it; None at the end."""
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


def main() -> None:
    """Loads what was asked for, and forks until the other end of the socket is closed."""
    number, *modules = sys.argv[1].split(",")
    connection = socket.socket(fileno=fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, _HIGH))
    os.close(int(number))
    given = dict(os.environ)
    from compat._tensorflow import tf1

    tf1.logging.set_verbosity(tf1.logging.ERROR)  # The first access to an attribute loads it.
    for module in modules:
        __import__(module)
    added = {name: value for name, value in os.environ.items() if name not in given}
    request, descriptors = _serve(connection)
    request["env"] = {**added, **request["env"]}  # TensorFlow sets some as it is loaded.
    _become(request, descriptors)
    _run(request["argv"])


def _serve(connection: socket.socket) -> tuple[Any, list[int]]:
    """Answers requests for ever; returns in each process that is forked, with its request."""
    wake, woken = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _HIGH) for end in os.pipe())
    os.closerange(3, _HIGH)  # Where a program's descriptors have to have their numbers.
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([connection.fileno(), wake], [], [])[0]
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            _report_ended(connection)
        if connection.fileno() not in ready:
            continue
        request, descriptors = receive(connection)
        if request is None:
            os._exit(0)
        threads = len(os.listdir("/proc/self/task"))  # A fork keeps just one.
        pid = os.fork() if threads == 1 else None
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for used in (connection.detach(), wake, woken):
                os.close(used)
            return request, descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        send(connection, {"started": pid} if pid else {"refused": f"{threads} threads"})


def _report_ended(connection: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        with contextlib.suppress(OSError):  # Nobody is left that would want to know.
            send(connection, {"ended": pid, "code": code})


def _become(request: Any, descriptors: list[int]) -> None:
    """Makes this process what it would be had it been started as a program of its own."""
    os.setsid()
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, _HIGH) for number in descriptors]
    for number in descriptors:
        os.close(number)
    for number, target in zip(high, request["descriptors"]):
        if target is None:  # The pipe of the watchdog; see `Watchdog.join`.
            os.write(number, b"%d " % os.getpid())
        else:
            os.dup2(number, target)
        os.close(number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    _show(request["argv"])
    random.seed()
    import numpy as np
    import threadpoolctl

    np.random.seed()
    # One thread was all that the server could have; `limits=None` restores no more than that.
    cores = len(os.sched_getaffinity(0))
    threads = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    threadpoolctl.threadpool_limits(int(threads) if threads.isdigit() else cores, "blas")


def _show(argv: list[str]) -> None:
    """Overwrites the command line that `ps` shows, for which the server was given a long one."""
    import ctypes

    with open("/proc/self/stat", encoding="utf-8") as file:
        fields = ["", "", *file.read().rpartition(")")[2].split()]
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    text = b"\0".join(map(os.fsencode, argv))[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))


def _run(argv: list[str]) -> None:
    """Runs what `python ARGV` would, as the main program of this process."""
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
