"""Tests the installed packages in processes: whether they load, and which runtimes work."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

import compat
from compat._tensorflow import coordinator_module, tf
from compat.cluster.ports import reserve
from compat.doctor import constraints
from compat.doctor.packages import LATE, NEEDED, Finding, Packages
from compat.runtime.registry import RUNTIMES

_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(compat.__file__)))
# A line of a traceback with the error; it need not be the last line.
_ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt)(: .*)?$")
_MOST_LETTERS = 200
# For tensorboard, import the module that its command loads, which imports more than the package.
_WORDS = {
    "tensorflow": ("-c", "from compat.doctor import trials; trials.print_facts()"),
    "tensorboard": ("-c", "import tensorboard.main"),
    "mlflow": ("-c", "import mlflow"),
}
_JOBS = ("ps", "worker")
_POLL_SECS = 0.05


class Attempt:
    """Runs `python WORDS` in a new folder; kills it after `deadline` seconds, or at `__exit__`."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        deadline: int,
        env: Mapping[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        folder.mkdir(parents=True)
        self._said, self._complaints = folder / "stdout", folder / "stderr"
        self._deadline = deadline
        kept = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        # Log lines of TensorFlow are not reasons for a failure.
        kept.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        # Makes this package importable from any folder.
        paths = filter(None, [kept.get("PYTHONPATH"), _PACKAGES])
        kept.update(PYTHONPATH=os.pathsep.join(paths), PYTHONUNBUFFERED="1")
        with open(self._said, "wb") as stdout, open(self._complaints, "wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**kept, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                # The alarm survives exec, so the kernel enforces the deadline even if this process
                # is killed.
                preexec_fn=functools.partial(signal.alarm, deadline),
            )

    def wait(self) -> str:
        """Waits for the process to exit; returns its `failure`, "" after success."""
        self._process.wait()
        return self.failure() or ""

    def failure(self) -> str | None:
        """The reason why the process failed, in one ASCII line; "" after success, None before."""
        code = self._process.poll()
        if not code:
            return None if code is None else ""
        if code == -signal.SIGALRM:
            last = ([""] + _lines(self._said))[-1]
            reason = f"{LATE} {self._deadline} s" + (f"; said {last!r}" if last else "")
        elif code < 0:
            reason = f"ended by {signal.Signals(-code).name}"
        else:
            lines = _lines(self._complaints)
            errors = [line for line in lines if _ERROR.match(line)]
            reason = (errors or lines or [f"exit code {code}"])[-1]
        return reason.encode("ascii", "backslashreplace").decode("ascii")[:_MOST_LETTERS]

    def result(self) -> str:
        """Returns the last line that the process printed."""
        return _lines(self._said)[-1]

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._process.kill()  # This has no effect after `wait`.
        self._process.wait()


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def print_facts() -> None:
    """Loads TensorFlow; prints the runtimes that it supports and the number of visible GPUs."""
    names = ["legacy"] + ["modern"] * (coordinator_module() is not None)
    gpus = tf.config.experimental.list_physical_devices("GPU")
    print(json.dumps({"runtimes": names, "gpus": len(gpus)}))


def imports(
    packages: Packages, folder: Path, deadline: int, facts: dict[str, Any]
) -> Iterator[Finding]:
    """Imports packages, all in parallel; fills `facts` if TensorFlow loads."""
    with contextlib.ExitStack() as stack:
        attempts = {
            name: stack.enter_context(Attempt(_WORDS[name], folder / name, deadline))
            for name in NEEDED
            if constraints.version(name) is not None
        }
        for name in NEEDED:
            if name not in attempts:
                yield Finding(name, "not installed")
                continue
            failure = attempts[name].wait()
            if failure:
                yield Finding(name, f"fails: {failure}", packages.remedy(failure, deadline))
                continue
            if name == "tensorflow":
                facts.update(json.loads(attempts[name].result()))
            yield Finding(name, "loads")


def runtimes(
    packages: Packages, folder: Path, deadline: int, facts: Mapping[str, Any], has_ports: bool
) -> Iterator[Finding]:
    """Trains with each runtime in a temporary cluster on this machine."""
    for runtime in RUNTIMES:
        if not facts or not has_ports:
            reason = "no port is available" if facts else "TensorFlow does not load"
            yield Finding(runtime, f"not tried: {reason}")
            continue
        if runtime not in facts["runtimes"]:
            yield Finding(runtime, "not in this TensorFlow; 2.4 and later have it")
            continue
        start = time.monotonic()
        failure = _train(runtime, folder / runtime, deadline)
        if failure:
            yield Finding(runtime, f"fails: {failure}", packages.remedy(failure, deadline))
        else:
            yield Finding(runtime, f"works ({time.monotonic() - start:.1f} s)")


def _train(runtime: str, folder: Path, deadline: int) -> str:
    with contextlib.ExitStack() as stack:
        reserved = {job: stack.enter_context(reserve()) for job in _JOBS}
        hosts = [reserved[job].address for job in _JOBS]
        attempts = {}
        for job in _JOBS:
            port, pass_fds = reserved[job].pass_to_child()
            # A trial must not reserve memory on a GPU that other processes use.
            env = dict(port, CUDA_VISIBLE_DEVICES="-1")
            words = ("-m", "compat.doctor.training_task", runtime, job, *hosts)
            attempt = Attempt(words, folder / job, deadline, env, pass_fds)
            attempts[job] = stack.enter_context(attempt)
            reserved[job].release()
        while True:
            failures = {job: attempt.failure() for job, attempt in attempts.items()}
            for job, failure in failures.items():
                if failure:
                    return f"{job}: {failure}"
            if None not in failures.values():
                return ""
            time.sleep(_POLL_SECS)
