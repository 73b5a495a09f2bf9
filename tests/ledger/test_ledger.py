"""Each update is applied as often as docs/failures.md promises, and a client that errs is found."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
CHECK = runpy.run_path(str(HERE / "check.py"))
check, Loss = CHECK["check"], CHECK["Loss"]
SETTINGS = {"capacity": 10_000, "count": 5, "pause": 0.005, "save_every": 0.5, "patience": 60.0}


def test_a_client_that_errs_is_found(run_program: Any, runtime: str, tmp_path: Path) -> None:
    """In one process: the checker sees what the client does not say."""
    settings = {**SETTINGS, "folder": str(tmp_path), "trainers": 1, "calls": 20, "pause": 0.0}
    run_program(
        PROGRAM, runtime=runtime, **{**settings, "save_every": 1000, "drop": 3, "repeat": 6}
    )
    result = check(tmp_path, runtime, 1, [])
    count = 5 if runtime == "modern" else 1
    dropped, repeated = (list(range(n * count, (n + 1) * count)) for n in (3, 6))
    assert f"updates {dropped} were lost, and no later checkpoint was restored" in result.wrong
    assert any(line.startswith(f"updates {repeated} were applied ") for line in result.wrong)
    assert (result.sent, result.unanswered, result.lost) == (20 * count, 0, 0)
    assert (result.once, result.twice) == (18 * count, count)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.endings
def test_updates_of_a_cluster_that_loses_tasks(
    start_cluster: Any, runtime: str, tmp_path: Path
) -> None:
    """The second worker and then the chief are killed, and started again."""
    trainers = 2 if runtime == "legacy" else 1
    settings = {**SETTINGS, "folder": str(tmp_path), "trainers": trainers}
    losses = []
    with start_cluster(PROGRAM, runtime, ps=1, worker=2) as cluster:
        server, *workers = (
            cluster.start(*task, **settings) for task in [("ps", 0), ("worker", 0), ("worker", 1)]
        )
        for index in (1, 0):
            wait_for_answers(tmp_path / "trainer-0.journal", 100)
            workers[index].send(signal.SIGKILL)
            now = time.monotonic()
            losses.append(Loss(f"worker {index}", "SIGKILL", now, now))
            workers[index].wait()
            workers[index] = cluster.restart("worker", index, **settings)
        wait_for_answers(tmp_path / "trainer-0.journal", 100)
        (tmp_path / "stop").touch()
        assert [process.wait().code for process in (server, *workers)] == [0, 0, 0]
    result = check(tmp_path, runtime, trainers, losses)
    assert result.wrong == []
    assert result.resumed == 1
    assert result.once > 100
    # Of an update that was cut short the global step may not count what the ledger has.
    assert abs(result.step - result.once - result.twice) <= 1 + result.unanswered


def wait_for_answers(journal: Path, count: int) -> None:
    """Waits until a client has had so many answers since now."""
    deadline = time.monotonic() + 150

    def answers() -> int:
        return journal.read_text("utf-8").count("done") if journal.exists() else 0

    begun = answers()
    while answers() < begun + count:
        assert time.monotonic() < deadline, "no update"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_minutes_of_faults(runtime: str, tmp_path: Path) -> None:
    """As in half an hour, which docs/ledger.md shows."""
    command = [sys.executable, "-m", "tests.ledger", "--minutes=3", "--every=10", "--seed=1"]
    command += [f"--runtime={runtime}", f"--results={tmp_path}"]
    done = subprocess.run(command, cwd=str(HERE.parents[1]), timeout=800, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stdout.decode()
