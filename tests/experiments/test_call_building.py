"""A modern run that is stopped while it builds a call of several steps saves what it reached."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from tests.conftest import RUNTIMES
from tests.experiments.conftest import Training

pytestmark = [
    pytest.mark.once,
    pytest.mark.long,
    pytest.mark.cluster,
    pytest.mark.skipif("modern" not in RUNTIMES, reason="the legacy runtime builds no such calls"),
]
PROGRAM = Path(__file__).parent / "programs" / "many_operations.py"
BUILDS = r"from step (\d+) on, calls of (\d+) steps; building the first one takes about [\d.]+ s$"


@pytest.fixture
def begin(tmp_path: Path, start_program: Any) -> Iterator[Callable[..., Training]]:
    started: list[Training] = []

    def begin(*flags: str) -> Training:
        shutil.copy(str(PROGRAM), str(tmp_path))
        logdir = tmp_path / "logs"
        argv = [sys.executable, PROGRAM.name, *flags, "--runtime=modern", f"--logdir={logdir}"]
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(Training(argv, tmp_path, logdir, quiet, start_program))
        return started[-1]

    yield begin
    for training in started:
        training.end()


@pytest.mark.parametrize("place", [[], ["--strategy=ps", "--num_ps=1", "--num_workers=1"]])
def test_a_signal_while_a_call_is_built_is_answered(
    begin: Callable[..., Training], place: list[str]
) -> None:
    training = begin(*place).wait_until_it_says(BUILDS)
    found = re.findall(BUILDS, training.out, re.MULTILINE)
    step, size = map(int, found[0])
    assert (size, len(found)) == (5, 1)
    time.sleep(1)  # The copies are made by now, or soon; TensorFlow optimizes them for long.
    assert "calls of 25" not in training.out
    sent = time.monotonic()
    training.send(signal.SIGTERM)
    assert training.wait(60).code == 143, training.out + training.err
    # 10 s on a machine that is idle; the tests beside this one may take half of it.
    assert time.monotonic() - sent < 20
    assert "no last checkpoint" not in training.out
    # A machine that built the call before the signal arrived has made the steps of the epoch.
    reached = 50 if re.search("^(?:.*] )?Step: 50,", training.out, re.MULTILINE) else step
    assert (training.logdir / f"model.ckpt-{reached}.index").exists(), training.out
    assert training.left_running() == []


def test_a_short_run_builds_no_larger_call(begin: Callable[..., Training]) -> None:
    training = begin("--max_steps=100", "--operations=4000").wait(300)
    assert training.code == 0, training.out + training.err
    assert "calls of" not in training.out
