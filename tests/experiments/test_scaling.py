"""The scaling study: what it trains, and what it leaves."""

from __future__ import annotations

import csv
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from experiments.report import scaling_table
from experiments.report.scaling_table import Cell, Result
from tests.conftest import RUNTIMES

pytestmark = [pytest.mark.once, pytest.mark.slow]
SCALING = "experiments.classics.scaling"
refusals = runpy.run_path(str(Path(__file__).with_name("programs") / "refusals.py"))["refusals"]


WRONG = [
    ("--workers=0", "--workers=0 is not a list of numbers; give some like 1,2,3"),
    ("--workers=two", "--workers=two is not a list of numbers"),
    ("--workers=2,2", "--workers=2,2 names none or one twice; give each once"),
    ("--modes=", "--modes= names none or one twice"),
    ("--modes=half", "--modes=half is unknown; give some of async,sync"),
    ("--runtimes=old", "--runtimes=old is unknown; give some of legacy,modern"),
    ("--batch_size=0", "--batch_size=0 is too small; give 1 or more"),
    ("--run_name=../a", "--run_name=../a has '..' in it"),
    ("--experiment_name=", "--experiment_name= is empty; give a name"),
]


def test_wrong_flags_are_said_in_one_line(tmp_path: Path) -> None:
    lines = refusals(SCALING, [([flag, "--dataset=digits"], {}) for flag, _ in WRONG], tmp_path)
    for (_, sentence), line in zip(WRONG, lines):
        assert line.startswith(sentence)


@pytest.fixture(scope="module")
def study(train: Any) -> Any:
    """A grid of two workers, in both modes, on the newest runtime: 24 updates each."""
    flags = ["--workers=2", "--modes=async,sync", f"--runtimes={RUNTIMES[-1]}", "--max_steps=24"]
    return train(*flags, module=SCALING).wait(400)


@pytest.fixture(scope="module")
def rows(study: Any) -> list[dict[str, str]]:
    with open(str(study.logdir / "scaling.csv"), newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.cluster
def test_every_cell_is_trained(study: Any, rows: list[dict[str, str]]) -> None:
    assert (study.code, study.err) == (0, "")
    assert study.left_running() == []
    cells = [(row["mode"], row["runtime"], row["workers"]) for row in rows]
    runtime = RUNTIMES[-1]
    assert cells == [("async", runtime, "2"), ("sync", runtime, "2")]
    assert [row["published"] for row in rows] == ["0.58", ""]


@pytest.mark.cluster
def test_each_cell_makes_its_updates(rows: list[dict[str, str]]) -> None:
    updates = {row["mode"]: int(row["updates"]) for row in rows}
    assert updates["sync"] == 24
    assert updates["async"] in ([24] if RUNTIMES[-1] == "modern" else [24, 25])


@pytest.mark.cluster
def test_one_run_of_mlflow_has_the_others(study: Any, record: Any) -> None:
    recorded = record(study.logdir)
    statuses = dict(recorded.select("select name, status from runs"))
    runtime = RUNTIMES[-1]
    names = {f"{mode}-{runtime}-2" for mode in ("async", "sync")}
    assert statuses == dict.fromkeys({"scaling", *names}, "FINISHED")
    ((parent,),) = recorded.select("select run_uuid from runs where name = 'scaling'")
    query = "select value from tags where key = 'mlflow.parentRunId'"
    assert recorded.select(query) == [(parent,)] * 2
    kept = {path.name for path in study.logdir.glob(f"mlflow-artifacts/{parent}/artifacts/*")}
    assert kept == {"scaling.md", "scaling.csv", "scaling.png"}


@pytest.mark.cluster
def test_the_table_is_printed(study: Any) -> None:
    assert (study.logdir / "scaling.md").read_text() in study.out
    assert (study.logdir / "scaling.png").read_bytes().startswith(b"\x89PNG")


def test_a_cell_that_failed_stays_in_the_table(tmp_path: Any) -> None:
    results = [
        Result(Cell("async", "legacy", 1), 0, 0.42, 11000, 220.0),
        Result(Cell("async", "legacy", 2), 138),
    ]
    scaling_table.write(results, str(tmp_path))
    lines = (tmp_path / "scaling.md").read_text().splitlines()
    row = ["async", "legacy", "1", "0.4200", "0.42", "11000", "220.0", "50"]
    assert re.split(r" *\| *", lines[2])[1:-1] == row
    assert "failed (138)" in lines[3]
