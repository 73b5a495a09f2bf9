"""A task that starts when the run is complete exits at once, with 0."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.settings import Settings
from experiments.training.recording import completion

pytestmark = pytest.mark.once


@pytest.fixture
def complete(tmp_path: Path) -> Settings:
    """The settings of a training that is complete at step 48."""
    config = Settings(logdir=str(tmp_path), epochs=4, run_token="first")
    (tmp_path / "model.ckpt-48.index").touch()
    completion.write(config, str(tmp_path / "model.ckpt-48"))
    return config


def test_the_mark_is_found(complete: Settings) -> None:
    assert completion.step(complete) == 48
    assert completion.step(dataclasses.replace(complete, run_token="second")) == 48
    first = completion.read(complete.logdir)
    completion.write(complete, "model.ckpt-60")
    assert completion.read(complete.logdir) != first
    assert sorted(path.name for path in Path(complete.logdir).iterdir()) == [
        "complete.json",
        "model.ckpt-48.index",
    ]


@pytest.mark.parametrize("change", [{"epochs": 5}, {"max_steps": 60}, {"learning_rate": 0.1}])
def test_other_settings_are_another_training(complete: Settings, change: dict[str, Any]) -> None:
    assert completion.step(dataclasses.replace(complete, **change)) is None


def test_a_training_that_goes_on_is_not_complete(complete: Settings) -> None:
    completion.clear(complete.logdir)
    assert (completion.step(complete), completion.read(complete.logdir)) == (None, None)
    completion.clear(complete.logdir)


def test_without_its_checkpoint_it_begins_anew(complete: Settings) -> None:
    (Path(complete.logdir) / "model.ckpt-48.index").unlink()
    assert completion.step(complete) is None


def test_the_marker_holds_no_secret(tmp_path: Path) -> None:
    config = Settings(logdir=str(tmp_path), tracking_uri="http://me:hush@mlflow:5000")
    (tmp_path / "model.ckpt-48.index").touch()
    completion.write(config, str(tmp_path / "model.ckpt-48"))
    marker = tmp_path / completion.FILE
    assert "hush" not in marker.read_text()
    assert completion.step(config) == 48
    elsewhere = dataclasses.replace(config, tracking_uri="http://me:hush@elsewhere:5000")
    assert completion.step(elsewhere) is None
    # That of an earlier release, which had it.
    marker.write_text(json.dumps({"step": 48, "settings": config.params()}))
    assert completion.step(config) == 48


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"step": null}', "[" * 100000, '{"step": 48}'])
def test_a_broken_mark_is_none(complete: Settings, text: str) -> None:
    (Path(complete.logdir) / "complete.json").write_text(text)
    assert (completion.step(complete), completion.read(complete.logdir)) == (None, None)


@pytest.mark.cluster
def test_late_tasks_end_at_once(tasks: Any, train: Any, tmp_path: Path) -> None:
    first = train("--strategy=ps", "--num_workers=1", "--max_steps=12").wait()
    assert first.code == 0, first.out
    logdir = tmp_path / "elsewhere"
    shutil.copytree(str(first.logdir), str(logdir))
    cluster = tasks(ps=1, worker=1)
    late = [cluster.start(job, 0, "--max_steps=12", logdir=logdir) for job in ("ps", "worker")]
    for task in late:
        assert (task.wait().code, task.err) == (0, "")
        assert task.out == (
            f"the run in {logdir} is complete, at step 12; give more --max_steps or --epochs, or "
            "after early stopping --early_stopping_patience=0, to resume it, or another --logdir "
            "to start anew\n"
        )
        assert task.left_running() == []
