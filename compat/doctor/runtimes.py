"""Checks which runtimes work: trains with each in a temporary local cluster."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any, Iterator, Mapping

from compat.cluster.ports import reserve
from compat.cluster.roles import RUNTIMES
from compat.doctor.finding import Finding
from compat.doctor.packages import Packages
from compat.doctor.timed_process import Attempt

_JOBS = ("ps", "worker")
_POLL_SECS = 0.05


def findings(
    packages: Packages, folder: Path, deadline: int, facts: Mapping[str, Any], has_ports: bool
) -> Iterator[Finding]:
    """Yields a finding for each runtime.

    Args:
      packages: the installed packages, for the command that fixes a failure.
      folder: folder for temporary files.
      deadline: limit for each trial, in seconds.
      facts: output of `compat.doctor.facts`; empty if TensorFlow does not load.
      has_ports: whether ports for a cluster are available.
    """
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
            attempts[job] = stack.enter_context(
                Attempt(words, folder / job, deadline, env, pass_fds)
            )
            reserved[job].release()
        while True:
            over = all(attempt.over() for attempt in attempts.values())
            for job, attempt in attempts.items():
                if attempt.failure:
                    return f"{job}: {attempt.failure}"
            if over:
                return ""
            time.sleep(_POLL_SECS)
