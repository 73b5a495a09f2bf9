"""Tries in processes what is installed: whether packages load, and which runtimes work."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any, Iterator, Mapping

from compat.cluster.ports import reserve
from compat.cluster.roles import RUNTIMES
from compat.doctor import constraints
from compat.doctor.finding import Finding
from compat.doctor.packages import NEEDED, Packages
from compat.doctor.timed_process import Attempt

# tensorboard.main: the module that the command loads, which imports more than the package.
_WORDS = {
    "tensorflow": ("-m", "compat.doctor.facts"),
    "tensorboard": ("-c", "import tensorboard.main"),
    "mlflow": ("-c", "import mlflow"),
}
_JOBS = ("ps", "worker")
_POLL_SECS = 0.05


def imports(
    packages: Packages, folder: Path, deadline: int, facts: dict[str, Any]
) -> Iterator[Finding]:
    """Imports each package, all in parallel; if TensorFlow loads, `facts` are filled."""
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
    """Trains with each runtime in a temporary local cluster."""
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
    """Trains with one ps and one worker; returns the reason of a failure, or ""."""
    with contextlib.ExitStack() as stack:
        reserved = {job: stack.enter_context(reserve()) for job in _JOBS}
        hosts = [reserved[job].address for job in _JOBS]
        attempts = {}
        for job in _JOBS:
            port, pass_fds = reserved[job].pass_to_child()
            # A trial must not reserve memory of a GPU that is in use.
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
