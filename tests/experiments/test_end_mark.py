"""A task that comes when the training is complete ends at once, and well."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.recording import completion
from experiments.settings.config import Config

pytestmark = pytest.mark.once


@pytest.fixture
def complete(tmp_path: Path) -> Config:
    """The settings of a training that is complete at step 48."""
    config = Config(logdir=str(tmp_path), epochs=4, run_token="first")
    (tmp_path / "model.ckpt-48.index").touch()
    completion.write(config, 48)
    return config


def test_the_mark_is_found(complete: Config) -> None:
    assert completion.step(complete) == 48
    assert completion.step(dataclasses.replace(complete, run_token="second")) == 48
    first = completion.read(complete.logdir)
    completion.write(complete, 60)
    assert completion.read(complete.logdir) != first
    assert sorted(path.name for path in Path(complete.logdir).iterdir()) == [
        "complete.json",
        "model.ckpt-48.index",
    ]


@pytest.mark.parametrize("change", [{"epochs": 5}, {"max_steps": 60}, {"learning_rate": 0.1}])
def test_other_settings_are_another_training(complete: Config, change: dict[str, Any]) -> None:
    assert completion.step(dataclasses.replace(complete, **change)) is None


def test_a_training_that_goes_on_is_not_complete(complete: Config) -> None:
    completion.clear(complete.logdir)
    assert (completion.step(complete), completion.read(complete.logdir)) == (None, None)
    completion.clear(complete.logdir)


def test_without_its_checkpoint_it_begins_anew(complete: Config) -> None:
    (Path(complete.logdir) / "model.ckpt-48.index").unlink()
    assert completion.step(complete) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"step": null}', "[" * 100000, '{"step": 48}'])
def test_a_broken_mark_is_none(complete: Config, text: str) -> None:
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
            f"the training in {logdir} is complete, at step 12; give more --max_steps, --epochs or "
            "--early_stopping_patience to go on, or another --logdir to begin anew\n"
        )
        assert task.left_running() == []
