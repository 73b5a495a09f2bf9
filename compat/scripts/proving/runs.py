"""Runs one side of a proof in a process of its own, and reads its record."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field, replace
from typing import Any, Iterable

import numpy as np

from compat.errors import UserError
from compat.processes.child import Watchdog
from compat.processes.forking import start
from compat.scripts.proving.recorder import arrays
from compat.scripts.proving.sides import Side

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = os.path.abspath(os.path.join(_FOLDER, *[os.pardir] * 3))
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from recorder import side; sys.path.pop(0);"
    " side.main(sys.argv[2])"
)
_LOG = "output.txt"
_ERROR = re.compile(r"[\w.]*(Error|Exception)\b[^:]*:")
OUT = "{out}"  # In an argument of the script, this stands for a folder of its own in each run.


@dataclass
class Run:
    """The record of one side.

    Attributes:
      calls: The record of each training call, in order.
      ended: The exit code; None if the process exited without one.
      is_cut: Whether the process was ended, after enough training calls or enough time.
      uses_cluster: Whether the program joined a cluster, of which it is the only task here.
      mismatch: A description of how its variables do not match those of the other run.
      trained_more: Whether it continued after the last training call of the other run.
    """

    side: Side
    folder: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    ended: int | None = None
    is_cut: bool = False
    uses_cluster: bool = False
    mismatch: str = ""
    trained_more: bool = False
    log: str = ""

    @property
    def trains_nothing(self) -> bool:
        """Whether the program does not train; then `calls` has all calls that fetch numbers."""
        return bool(self.calls) and "fetched" in self.calls[0]

    def load(self, kind: str, call: int) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the arrays of one kind of a call; empty if they were not recorded."""
        read: Any = arrays.load
        return dict(read(os.path.join(self.folder, f"{kind}-{call:04d}.npz")))

    def operations(self, call: int) -> dict[str, Any]:
        """Returns the operations of a call: its "operations" and its "gradients"."""
        with open(
            os.path.join(self.folder, f"operations-{call:04d}.json"), encoding="utf-8"
        ) as file:
            return dict(json.load(file))

    def last_line(self) -> str:
        """Returns the error that ended the program, or the last line of its output."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        # TensorFlow 1.15 adds the place where the operation was created.
        errors = [line for line in lines if _ERROR.match(line)]
        return [*lines, *errors][-1] if lines else "no output"


def run(
    side: Side,
    arguments: Iterable[str],
    folder: str,
    *,
    replay: Run | None,
    steps: int,
    details: Iterable[int],
    every: bool = False,
    each: bool = False,
    gathers: bool = False,
    begun: float,
    timeout: float,
) -> Run:
    """Runs a side until it exits, or until the last training call to compare.

    Args:
      side: The side to run.
      arguments: Arguments of the program.
      folder: The folder for the record; it is created if it does not exist.
      replay: The run whose initial values and batches are used.
      steps: The number of training calls after which the program ends.
      details: Numbers of the calls whose operations are all recorded.
      every: Whether all calls that fetch numbers are recorded, not only training calls.
      each: Whether each training call starts from the variables of the run that is repeated.
      gathers: Whether one of the two runs makes several calls of a session as one (`--ahead`); then
        nothing is read between calls.
      begun: The time at which the proof started, in seconds since the epoch.
      timeout: Limit of the run, in seconds.

    Raises:
      UserError: The run did not end in time. For the first run (without `replay`) this is no error
        if it has made a training call.
    """
    out = os.path.join(folder, "out")
    os.makedirs(out)
    words = [*(arguments if side.takes_flags else ()), *side.arguments]
    specification = {
        "script": side.script,
        "args": [word.replace(OUT, out) for word in words],
        "how": side.how,
        "options": side.options,
        "packages": _PACKAGES,
        "begun": begun,
        "folder": os.path.abspath(folder),
        "replay": os.path.abspath(replay.folder) if replay else None,
        "steps": steps,
        "details": sorted(details),
        "every": every,
        "each": each,
        "gathers": gathers,
    }
    path = os.path.join(folder, "run.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(specification, file)
    log = os.path.join(folder, _LOG)
    env = {**os.environ, "PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "2"}
    if not side.takes_flags:  # The program should not read the cluster from the environment either.
        env.pop("TF_CONFIG", None)
    if side.how == "plain":
        env.pop("PYTHONPATH", None)
    words = [side.python, "-c", _PROGRAM, _FOLDER, os.path.abspath(path)]
    with open(log, "wb") as output, contextlib.closing(Watchdog()) as watchdog:
        streams: Any = {"stdout": output.fileno(), "stderr": output.fileno()}
        process = start(None, words, env=env, watchdog=watchdog.fileno(), **streams)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
            is_late = process.poll() is None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # Children of the process may still run.
            process.wait()
            watchdog.leave(process.pid)
    done = read(side, folder)
    if is_late and (replay is not None or not done.calls):
        raise UserError(
            f"{side.name}, {side.says}, has not ended after {timeout:g} s; raise --timeout, or "
            f"lower --steps; its last line is: {done.last_line()}"
        )
    return replace(done, is_cut=done.is_cut or is_late)


def read(side: Side, folder: str) -> Run:
    """Reads the record of a side from a folder."""
    done = Run(side, folder, log=os.path.join(folder, _LOG))
    path = os.path.join(done.folder, "calls.jsonl")
    if not os.path.exists(path):
        return done
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):  # The process was killed while it wrote the line.
                break
            record = json.loads(line)
            done.mismatch = record.get("mismatch", done.mismatch)
            done.trained_more |= "more" in record
            done.uses_cluster |= "cluster" in record
            if "end" in record:
                done.ended, done.is_cut = record["end"], "limit" in record
            elif "raised" in record:
                done.calls.append(record)
    return done


def now() -> float:
    """Returns the time in seconds since the epoch, by the clock that dates files."""
    return time.time()
