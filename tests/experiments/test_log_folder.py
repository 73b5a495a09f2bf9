"""What somebody sees who only looks into a log folder, by a clock that the test moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat import tf1
from compat.cluster.liveness.monitor import Monitor
from compat.errors import PeerError
from experiments.evaluation import best_checkpoint
from experiments.training.recording import log_folder
from experiments.training.recording.log_folder import Wait, activity_monitor

pytestmark = pytest.mark.once


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_a_wait_is_told_ever_more_rarely() -> None:
    said: list[str] = []
    clock = Clock()
    wait = Wait(said.append, clock)
    for _ in range(300):
        wait.go_on("rain")
        clock.time += 1
    assert said == [f"waiting for rain ({secs} s)" for secs in (30, 60, 120, 240)]
    wait.begin()
    wait.go_on("rain")
    assert len(said) == 4


def poll_for(monitor: Monitor, clock: Clock, seconds: int) -> None:
    for _ in range(seconds // 60):
        clock.time += 60
        monitor.poll()


@pytest.mark.parametrize("name", ["checkpoint", "console.log", "events.out.tfevents.1.host.1.0"])
def test_a_silent_folder_is_given_up(tmp_path: Path, name: str) -> None:
    clock = Clock()
    monitor = activity_monitor(str(tmp_path), clock)
    poll_for(monitor, clock, 3540)
    (tmp_path / name).write_text("a sign of life")
    poll_for(monitor, clock, 3600)
    with pytest.raises(PeerError, match="within 3600 s to the chief of .*: no change, start its "):
        poll_for(monitor, clock, 60)


def test_what_an_evaluator_writes_is_no_sign_of_life(tmp_path: Path) -> None:
    clock = Clock()
    monitor = activity_monitor(str(tmp_path), clock)
    poll_for(monitor, clock, 3540)
    (tmp_path / "evaluations.jsonl").write_text("{}")
    (tmp_path / "eval").mkdir()
    with pytest.raises(PeerError):
        poll_for(monitor, clock, 60)


@pytest.mark.parametrize("state", [None, "", "\x00", "model_checkpoint_path: 7"])
def test_no_newest_checkpoint(tmp_path: Path, state: str | None) -> None:
    if state is not None:
        (tmp_path / "checkpoint").write_text(state)
    assert log_folder.newest_checkpoint(str(tmp_path)) is None


def test_best_checkpoint_is_found_by_tensorflow(tmp_path: Path) -> None:
    for step in (10, 20):
        for suffix in ("index", "data-00000-of-00001"):
            (tmp_path / f"model.ckpt-{step}.{suffix}").touch()
        kept = best_checkpoint.keep(str(tmp_path / f"model.ckpt-{step}"), str(tmp_path / "best"))
        assert kept == str(tmp_path / "best" / f"model.ckpt-{step}")
    moved = tmp_path / "moved"
    (tmp_path / "best").rename(moved)
    assert tf1.train.latest_checkpoint(str(moved)) == str(moved / "model.ckpt-20")
    assert log_folder.newest_checkpoint(str(moved)) == str(moved / "model.ckpt-20")
