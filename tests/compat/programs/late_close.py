"""Exits with 3 while a session's close, which was left behind, still waits for a stopped server.

The server answers soon after Python has begun to end, which takes three seconds here.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any, Callable

import compat
from compat import tf1
from compat.cluster.liveness import watchdog
from compat.cluster.ports import reserve

SERVER = """
import sys, time
from compat import tf1
tf1.train.Server({"ps": [sys.argv[1]]}, "ps", 0)
print("up", flush=True)
time.sleep(300)
"""


class Slow:
    """An object whose end takes long, as that of a large graph does on a busy machine."""

    sleep: Callable[[float], None] = time.sleep  # Python unsets the names of modules before.

    def __del__(self) -> None:
        self.sleep(3)


def main() -> None:
    compat.select_runtime("legacy")
    with reserve() as reservation:
        reservation.share()
        address = reservation.address
        server = subprocess.Popen([sys.executable, "-c", SERVER, address], stdout=subprocess.PIPE)
        assert server.stdout is not None
        server.stdout.readline()
    session = tf1.Session("grpc://" + address)
    with tf1.device("/job:ps/task:0"):
        session.run(tf1.constant(1))
    server.send_signal(signal.SIGSTOP)
    # Not a thread of this process, whose Python ends meanwhile.
    later = f"sleep 2; kill -CONT {server.pid}; sleep 10; kill -KILL {server.pid}"
    subprocess.Popen(["sh", "-c", later], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watchdog.close_session(session.close, patience=0.2)
    print(f"left behind: {watchdog.is_stuck()}", flush=True)
    keep: Any = sys
    keep.compat_slow = Slow()
    sys.exit(3)


if __name__ == "__main__":
    main()
