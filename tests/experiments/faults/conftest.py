"""A task and what goes wrong with it; what the tests have shown is kept for docs/failures.md."""

from __future__ import annotations

import json
import os
import re
import runpy
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple

import pytest

from compat.doctor import constraints

# By its path: pytest on Python 3.7 imports only what it has collected before.
_SERVERS = runpy.run_path(str(Path(__file__).parents[2] / "compat" / "tracking" / "conftest.py"))
LOADERS, tensorboard, wait_for = (_SERVERS[n] for n in ("LOADERS", "tensorboard", "wait_for"))
Relay, served_by_mlflow = _SERVERS["Relay"], _SERVERS["served_by_mlflow"]
_DISKS = runpy.run_path(str(Path(__file__).with_name("disk.py")))
Disk, mounted = _DISKS["Disk"], _DISKS["mounted"]

PS, CHIEF, WORKER, EVALUATOR = ("ps", 0), ("worker", 0), ("worker", 1), ("evaluator", 0)
VICTIMS = {"worker": WORKER, "chief": CHIEF, "ps": PS, "evaluator": EVALUATOR}
# What has to hold on every TensorFlow.
CORE = ["test_SIGKILL", "test_SIGTERM", "test_never_started"]
EVERY = 50
FLAGS = ["--learning_rate=0.1", f"--checkpoint_every={EVERY}", "--log_every=10"]
FINITE = "--max_steps=1500"


@pytest.hookimpl(tryfirst=True)  # Before tests are left out by their marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the core of the table."""
    for item in items:
        victim = item.callspec.params.get("fault") if hasattr(item, "callspec") else None
        if getattr(item, "originalname", "") in CORE and victim not in (None, "evaluator"):
            item.add_marker(pytest.mark.core)


def pytest_configure(config: pytest.Config) -> None:
    """Listens where tox asks for it."""
    # Of several processes of pytest, one hears from all.
    if "FAULTS_RESULTS" in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FaultsResults(Path(os.environ["FAULTS_RESULTS"])))


class FaultsResults:
    """What the others did, by fault, victim and runtime; `page` reads it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._cells: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if "fault" in properties:
            fault, victim, runtime = properties["fault"]
            cell = {"fault": fault, "victim": victim, "runtime": runtime}
            if report.when == "call" and not report.skipped:
                cell["outcome"] = properties.get("outcome", "") if report.passed else ""
                self._cells[report.nodeid] = cell
            elif report.failed:
                self._cells[report.nodeid] = {**cell, "outcome": ""}

    def pytest_sessionfinish(self) -> None:
        if not self._cells:
            return
        result = {
            "tensorflow": constraints.version("tensorflow"),
            "cells": list(self._cells.values()),
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(result, indent=1), encoding="utf-8")


class Fault(NamedTuple):
    """A cell of the table.

    Attributes:
      victim: the task that meets the fault.
      runtime: of the cluster.
      survived: whether the training goes on without the victim.
      tell: is given what the others did, in words.
    """

    victim: tuple[str, int]
    runtime: str
    survived: bool
    tell: Callable[[str], None]

    @property
    def name(self) -> str:
        return "/job:{}/task:{}".format(*self.victim)

    @property
    def needed(self) -> bool:
        """Whether the others wait for the victim before they train."""
        return self.victim != EVALUATOR and (self.victim, self.runtime) != (WORKER, "legacy")


@pytest.fixture(params=list(VICTIMS))
def fault(
    request: pytest.FixtureRequest, runtime: str, record_property: Callable[[str, Any], None]
) -> Fault:
    name = str(request.node.originalname)[len("test_") :].replace("_", " ")
    record_property("fault", [name, request.param, runtime])
    survived = request.param in ("worker", "evaluator")
    victim = VICTIMS[request.param]
    return Fault(victim, runtime, survived, lambda words: record_property("outcome", words))


def accuracy(out: str) -> float:
    (found,) = re.findall("Test-Accuracy: ([0-9.]+)", out)
    return float(found)


def last_step(out: str) -> int:
    return max(map(int, re.findall("Step: ([0-9]+),", out)))


def updates_lost(out: str) -> list[int]:
    """Returns how many updates each return of the chief has cost, of those that it had told."""
    reached, losses = 0, []
    for line in out.splitlines():
        told = re.match(r"(?:\[worker 0\] )?(?:Step: |resuming from step )(\d+)", line)
        if told and "resuming" in line:
            losses.append(max(0, reached - int(told.group(1))))
        if told:
            reached = int(told.group(1))
    return losses


def wait_for_step(training: Any, step: int) -> None:
    """Waits until the training says that it has come so far."""
    wait_for(lambda: last_step(training.out) >= step, f"step {step}")


@pytest.fixture(scope="session")
def assert_learnt(train: Any) -> Callable[..., None]:
    """Asserts that a cluster was as accurate as one of the same length to which nothing happened.

    Two such clusters differ themselves a little, for who computes which update differs.
    """
    found: dict[tuple[str, str], float] = {}

    def compare(runtime: str, out: str, length: str) -> None:
        if (runtime, length) not in found:
            training = train("--strategy=ps", *FLAGS, length, f"--runtime={runtime}").wait()
            assert training.code == 0, training.out
            found[runtime, length] = accuracy(training.out)
        assert accuracy(out) >= found[runtime, length] - 0.05

    return compare


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for links to log folders, at which a real TensorBoard looks in the end."""
    folder: Path = tmp_path_factory.mktemp("board")
    yield folder
    runs = {path.name: "cost/train" for path in folder.iterdir()}
    # An evaluator has a folder of its own.
    evaluated = [name for name in runs if (folder / name / "eval").exists()]
    runs.update({f"{name}/eval": "cost/validation" for name in evaluated})
    for loader in LOADERS if runs else []:
        with tensorboard(folder, loader) as address:
            for run, tag in sorted(runs.items()):
                _assert_steps_increase(address, run, tag)


def _assert_steps_increase(address: str, run: str, expected: str) -> None:
    def get(path: str, **query: str) -> Any:
        url = f"{address}/data/plugin/scalars/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=100) as answer:
            return json.load(answer)

    wait_for(lambda: expected in get("tags").get(run, {}), f"{expected} of {run}")
    for tag in get("tags")[run]:
        steps = [step for _, step, _ in get("scalars", run=run, tag=tag)]
        assert all(before < after for before, after in zip(steps, steps[1:])), (run, tag)


@pytest.fixture
def recorded(record: Any, board: Path, request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    """Reads back what a cluster has recorded: a training, and in the same run the evaluations."""

    def read(logdir: Path) -> Any:
        found = record(logdir)
        found.assert_one_training()
        if "train/cost" in found.points:  # Else it has ended too early.
            (board / re.sub(r"\W+", "-", request.node.name)).symlink_to(logdir)
        return found

    return read


@pytest.fixture
def finished(fault: Fault, recorded: Any, assert_learnt: Callable[..., None]) -> Callable[..., Any]:
    """Asserts that a cluster came to its end, and learnt as if nothing had happened.

    Is given each start of the chief, or of the command that started all.
    """

    def read(*chief: Any, length: str = FINITE) -> Any:
        found = recorded(chief[0].logdir)
        assert found.run[1] == "FINISHED"
        assert_learnt(fault.runtime, "".join(start.out for start in chief), length)
        return found

    return read
