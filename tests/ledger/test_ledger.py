"""Each update is applied as often as docs/failures.md promises, and a client that errs is found."""

from __future__ import annotations

import runpy
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
CHECK = runpy.run_path(str(HERE / "check.py"))
check, Loss = CHECK["check"], CHECK["Loss"]
SETTINGS = {"capacity": 10_000, "count": 5, "pause": 0.005, "save_every": 0.5, "patience": 20.0}


@pytest.fixture(params=["", "drops", "repeats"])
def broken(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_client_that_errs_is_found(
    run_program: Any, runtime: str, broken: str, tmp_path: Path
) -> None:
    """In one process: the checker sees what the client has not told."""
    settings = {**SETTINGS, "folder": str(tmp_path), "trainers": 1, "calls": 20, "pause": 0.0}
    settings.update(save_every=1000, broken=broken)
    run_program(PROGRAM, runtime=runtime, **settings)
    result = check(tmp_path, runtime, 1, [])
    count = 5 if runtime == "modern" else 1
    assert (result.sent, result.unanswered, result.lost) == (20 * count, 0, 0)
    numbers = list(range(3 * count, 4 * count))
    if broken == "drops":
        assert f"updates {numbers} were lost, and no later checkpoint was restored" in result.wrong
        assert (result.once, result.twice) == (19 * count, 0)
    elif broken == "repeats":
        assert any(f"updates {numbers} were applied " in line for line in result.wrong)
        assert (result.once, result.twice) == (19 * count, count)
    else:
        assert result.wrong == []
        assert (result.once, result.twice) == (20 * count, 0)


@pytest.mark.cluster
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
    deadline = time.monotonic() + 60

    def answers() -> int:
        return journal.read_text("utf-8").count("done") if journal.exists() else 0

    begun = answers()
    while answers() < begun + count:
        assert time.monotonic() < deadline, "no update"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_minutes_of_faults(runtime: str) -> None:
    """As `python -m tests.ledger`, which runs an hour."""
    from tests.ledger.run import measure

    assert measure(runtime, minutes=3, every=10, seed=1)["wrong"] == []
