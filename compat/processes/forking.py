"""Starts Python programs by forking a process that has already loaded TensorFlow.

Example:
  >>> with ForkServer() as server:
  ...     task = server.start([sys.executable, "train.py"], env=dict(os.environ))
  ...     code = task.wait(60)

Loading TensorFlow takes 3 to 5 s of one core in each task of a local cluster, so one process loads
it for all of them. This works only on Linux, where `/proc` shows that the process has a single
thread, which is a condition of a safe fork.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Mapping, Sequence

from compat.processes import fork_server, stop_signals
from compat.processes.fork_server import receive, send
from compat.processes.forked import Forked

_LOADING_SECS = 300.0
# Variables that Python and libraries read at import, so all programs must have the server's values.
_READ_EARLY = ("PYTHON", "LANG", "LC_", "LD_", "TF_", "GRPC_", "XLA_", "OMP_", "OPENBLAS_", "MKL_")
_READ_LATE = {"TF_CONFIG", "PYTHONUNBUFFERED"}
# With these, loading starts no thread. By default OpenBLAS starts one for each core, and Arrow's
# allocator starts one in the background.
_ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
_TITLE_BYTES = 16384  # Room for the command lines of the tasks, which `ps` shows.
# Adds the path of this package only for one import, since in `PYTHONPATH` it would come first.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop());"
    " from compat.processes import fork_server; sys.path.pop(0); fork_server.main()"
)
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read_early(env: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of `env` that are read while Python and TensorFlow load.

    All programs of one `ForkServer` share them, since it loads TensorFlow only once.
    """
    return {k: v for k, v in env.items() if k.startswith(_READ_EARLY) and k not in _READ_LATE}


def start(
    server: ForkServer | None,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int | None = None,
    watchdog: int | None = None,
    shielded: bool = False,
    **options: Any,
) -> subprocess.Popen[bytes] | Forked:
    """Starts a program, by `server` if that can fork it; see `ForkServer.start`."""
    settings: Any = {"env": env, "stdin": stdin, **options}
    forked = server and server.start(argv, watchdog=watchdog, shielded=shielded, **settings)
    if forked:
        return forked
    if watchdog is not None:  # Only launchers have one; `preexec_fn` is unsafe with threads.
        settings["preexec_fn"] = lambda: os.write(watchdog, b"%d " % os.getpid())
    settings["stdin"] = subprocess.DEVNULL if stdin is None else stdin
    with stop_signals.blocked() if shielded else contextlib.nullcontext():
        return subprocess.Popen(argv, start_new_session=True, **settings)


def inherited(module: str, env: Mapping[str, str]) -> ForkServer | None:
    """Returns the server that has forked this process, if it can start a program with `env`."""
    return ForkServer() if module in fork_server.preloaded and _is_inherited(env) else None


def _is_inherited(env: Mapping[str, str]) -> bool:
    """Returns whether the server that has forked this process can start programs with `env`."""
    ours = fork_server.environment
    return bool(ours) and read_early(env) == read_early(ours)


class ForkServer:
    """A process that loads TensorFlow, at the first `start` or by `load`; a context manager.

    A forked program uses the server that has forked it, if both have the same environment, so a
    sweep of clusters loads TensorFlow once.

    Args:
      preload: Names of other modules to load before TensorFlow, which must neither start a thread
        nor depend on the program or its environment.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._preload = preload
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._early: dict[str, str] | None = None
        self._codes: dict[int, int | None] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def load(self, env: Mapping[str, str]) -> None:
        """Begins to load TensorFlow for programs with this environment; does not wait."""
        with self._lock:
            self._load(env)

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        stdout: int,
        stderr: int,
        stdin: int | None = None,
        pass_fds: Sequence[int] = (),
        watchdog: int | None = None,
        shielded: bool = False,
    ) -> Forked | None:
        """Starts a program in a session of its own.

        Args:
          argv: The path of this Python, and a script or `-m` and a module, with arguments.
          env: Its whole environment.
          cwd: Its working directory; by default that of this process.
          stdout: A descriptor.
          stderr: A descriptor.
          stdin: A descriptor; nothing to read by default.
          pass_fds: Descriptors that keep their numbers.
          watchdog: A descriptor to which it first writes its process id.
          shielded: Whether `stop_signals` do not reach it; it then has to end with this process.

        Returns:
          The program; None if it has to be started as a process: on another system, with another
          Python, with another environment than the server's, or if the server has several threads.
        """
        with self._lock:
            if not self._can_start(argv, env, cwd):
                return None
            with open(os.devnull, "rb") as nothing:
                input_descriptor = nothing.fileno() if stdin is None else stdin
                numbers: list[tuple[int, int | None]] = [
                    (input_descriptor, 0),
                    (stdout, 1),
                    (stderr, 2),
                ]
                numbers += [(number, number) for number in pass_fds]
                numbers += [] if watchdog is None else [(watchdog, None)]
                request = {
                    "argv": list(argv),
                    "env": dict(env),
                    "cwd": os.path.abspath(cwd or os.getcwd()),
                    "descriptors": [target for _, target in numbers],
                    "shielded": shielded,
                }
                assert self._connection is not None
                try:
                    send(self._connection, request, tuple(number for number, _ in numbers))
                except OSError:  # The environment is too long for one message.
                    return None
            pid = self._receive_start()
            if pid is None:
                return None
            self._codes[pid] = None
            return Forked(pid, self.code_of)

    def code_of(self, pid: int) -> int | None:
        """Returns the exit code of a program of this server; None while the program runs."""
        with self._lock:
            if self._connection is not None and self._codes[pid] is None:
                self._connection.setblocking(False)
                try:
                    while self._note(receive(self._connection)[0]):
                        pass
                except BlockingIOError:
                    pass
                except OSError:
                    self._abandon()
                finally:
                    if self._connection is not None:
                        self._connection.settimeout(_LOADING_SECS)
            return self._codes[pid]

    def close(self) -> None:
        """Ends the server, and kills the process groups of programs that still run."""
        with self._lock:
            self._abandon()

    def _can_start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> bool:
        if argv[0] != sys.executable or len(argv) < 2:
            return False
        if argv[1] == "-m":
            if len(argv) < 3:
                return False
        elif argv[1].startswith("-") or not os.path.isfile(os.path.join(cwd or "", argv[1])):
            return False
        self._load(env)
        return read_early(env) == self._early and self._connection is not None

    def _load(self, env: Mapping[str, str]) -> None:
        if sys.platform != "linux" or self._early is not None:
            return
        self._early = read_early(env)
        if _is_inherited(env):
            self._connection = fork_server.connect()
            self._connection.settimeout(_LOADING_SECS)
            return
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its, stop_signals.blocked():
            configuration = ",".join([str(its.fileno()), *self._preload])
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, configuration, " " * _TITLE_BYTES, _ROOT],
                env={**env, **_ONE_THREAD, "PYTHONUNBUFFERED": ""},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(its.fileno(),),
            )
        ours.settimeout(_LOADING_SECS)
        self._connection = ours

    def _receive_start(self) -> int | None:
        """Returns the process id of the requested program; None if the server refused."""
        while self._connection is not None:
            try:
                message = receive(self._connection)[0]
            except OSError:  # A server that takes too long must not start the program later.
                message = None
            if message is not None and "started" in message:
                return int(message["started"])
            if message is not None and "refused" in message:
                return None
            self._note(message)
        return None

    def _note(self, message: Any) -> bool:
        """Records that a program has ended; returns False if the server itself has ended."""
        if message is None:
            self._abandon()
            return False
        self._codes[message["ended"]] = message["code"]
        return True

    def _abandon(self) -> None:
        """Drops the server, and kills its programs, whose ends it can no longer report."""
        if self._connection is None:
            return
        self._connection.close()
        self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for pid, code in self._codes.items():
            # The process may have no group yet.
            for kill in (os.killpg, os.kill) if code is None else ():
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)
                self._codes[pid] = -signal.SIGKILL
