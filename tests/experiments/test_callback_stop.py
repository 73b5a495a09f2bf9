"""A callback ends a run by `run.stop`: in all its tasks, with a reason, and as a complete run."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from experiments.evaluation import early_stopping
from tests.experiments.conftest import Training

PROGRAMS = Path(__file__).parent / "programs"
CLUSTER = ["--strategy=ps", "--num_ps=1", "--num_workers=2"]
PLACES = {"alone": [], "cluster": CLUSTER, "sync": [*CLUSTER, "--sync"]}
_DEADLINE_SECS = 400.0

Start = Callable[..., Training]
pytestmark = pytest.mark.once


@pytest.fixture
def start_stops(tmp_path: Path, start_program: Any, empty_store: Path) -> Iterator[Start]:
    """Runs the program to its end in one folder."""
    for file in (PROGRAMS / "stops.py", PROGRAMS / "digits.py", empty_store):
        shutil.copy(str(file), str(tmp_path))
    started: list[Training] = []

    def begin(*flags: str) -> Training:
        argv = [sys.executable, "stops.py", "--logdir=logs", "--system_metrics_every=0", *flags]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(Training(argv, tmp_path, tmp_path / "logs", env, start_program))
        done = started[-1].wait(_DEADLINE_SECS)
        assert done.code == 0, done.out + done.err
        return done

    yield begin
    for training in started:
        training.end()


def stopped_at(training: Training, hook: str) -> int:
    """Returns the step at which a run has ended, whose lines name the hook."""
    reason = re.escape(rf"enough\nof {hook}")
    (said,) = re.findall(rf"(?m)early stopping at step (\d+): {reason}$", training.out)
    (end,) = re.findall(rf"(?m)ended at step (\d+): {reason}$", training.out)
    assert int(said) <= int(end)
    return int(end)


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_callback_ends_the_run_of_all_tasks(
    start_stops: Start, tmp_path: Path, runtime: str, place: str
) -> None:
    flags = [f"--runtime={runtime}", *PLACES[place]]
    done = start_stops(*flags)
    step = stopped_at(done, "on_step")
    assert 20 <= step < 20_000
    assert re.search(r"(?m)Test-Accuracy: 0\.\d+", done.out)
    assert not done.left_running()
    with contextlib.closing(sqlite3.connect(str(tmp_path / "mlflow.db"))) as store:
        (status,) = store.execute("select status from runs").fetchone()
        tags = dict(store.execute("select key, value from tags").fetchall())
    assert status == "FINISHED"
    assert tags["early_stopping"].endswith(r": enough\nof on_step")
    assert r", where it was stopped early: enough\nof on_step" in tags["mlflow.note.content"]
    if place == "alone":
        more = start_stops(*flags, f"--max_steps={step + 40}")
        assert f"was stopped early, at step {step}; give --early_stopping_patience=0" in more.out
        resumed = start_stops(
            *flags, f"--max_steps={step + 40}", "--stop_at=900000", "--early_stopping_patience=0"
        )
        assert f"ended at step {step + 40}: None\n" in resumed.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [["on_start", "--stop_at=0"], ["on_evaluation"]], ids=["on_start", "on_evaluation"]
)
def test_it_does_so_from_other_hooks(start_stops: Start, runtime: str, flags: list[str]) -> None:
    hook, *others = flags
    done = start_stops(f"--runtime={runtime}", f"--hook={hook}", *others)
    assert stopped_at(done, hook) <= 100


@pytest.mark.slow
def test_an_evaluator_passes_it_on(start_stops: Start, runtime: str) -> None:
    more = ["--hook=on_evaluation", "--eval_in_chief=false", "--checkpoint_every=50"]
    done = start_stops(f"--runtime={runtime}", *CLUSTER, "--evaluator", "--eval_every=99999", *more)
    assert stopped_at(done, "on_evaluation") < 500_000


def test_a_request_of_a_callback_stands_until_patience_is_given(tmp_path: Path) -> None:
    request = early_stopping.StopRequest(40, 0, "enough")
    for patience, stands in ((None, True), (0, False), (3, False)):
        early_stopping.request(str(tmp_path), request)
        found = early_stopping.standing(str(tmp_path), 40, patience)
        assert found == (request if stands else None)
