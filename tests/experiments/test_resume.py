"""A training that was stopped goes on: same folder, same run, and the same weights in the end."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytestmark = [pytest.mark.endings, pytest.mark.once]

ENDLESS = "--max_steps=1000000"
SETTINGS = ["--learning_rate=0.1", "--summary_every=1"]


class Leg(NamedTuple):
    """A part of a training, and what was recorded in all when it had ended."""

    training: Any
    recorded: Any
    run: tuple[str, str]
    step: int


@pytest.fixture(scope="module")
def legs(train: Any, record: Any, runtimes: list[str]) -> list[Leg]:
    """One training in one folder, which SIGTERM stops again and again, and of which each part is
    on another runtime or on the same one; only the last part ends by itself, after 30 updates."""
    order = [*runtimes, *reversed(runtimes)]
    legs: list[Leg] = []
    for runtime in order:
        is_last = len(legs) + 1 == len(order)
        end = f"--max_steps={legs[-1].step + 30}" if is_last else ENDLESS
        logdir = legs[-1].training.logdir if legs else None
        training = train(*SETTINGS, end, f"--runtime={runtime}", logdir=logdir)
        if not is_last:
            training.wait_until_it_says("^Step: ").send(signal.SIGTERM)
        # Who was asked to end leaves to the sender what takes long, as loading MLflow may.
        assert training.left_running() == []
        recorded = record(training.logdir)
        legs.append(Leg(training, recorded, recorded.run, recorded.checkpoints[-1]))
    return legs


@pytest.mark.long
def test_sigterm_saves_what_was_reached(legs: list[Leg]) -> None:
    for leg in legs[:-1]:
        assert leg.training.code == 143, leg.training.err
        assert leg.training.err == ""
        assert leg.recorded.points["train/cost"][-1][0] == leg.step
        assert leg.run == (legs[0].run[0], "KILLED")
        goes_on = f"stopped; the same command with --logdir={leg.training.logdir} resumes"
        assert goes_on in leg.training.out.splitlines()
        assert "Test-Accuracy" not in leg.training.out


def test_goes_on_from_the_saved_step(legs: list[Leg]) -> None:
    for before, leg in zip(legs, legs[1:]):
        first_line, *lines = leg.training.out.splitlines()
        assert first_line == f"resuming from step {before.step} in {leg.training.logdir}"
        match = next(filter(None, (re.match(r"Step: (\d+),", line) for line in lines)))
        assert before.step < int(match.group(1)) <= before.step + 12


def test_ends_as_if_it_had_not_been_stopped(legs: list[Leg]) -> None:
    last = legs[-1]
    assert last.training.code == 0, last.training.err
    assert last.training.err == ""
    assert last.step == legs[-2].step + 30
    assert last.run == (legs[0].run[0], "FINISHED")


def test_curves_are_those_of_one_training(legs: list[Leg]) -> None:
    recorded = legs[-1].recorded
    assert len(recorded.event_files) == len(legs)
    recorded.assert_one_training()
    steps = [step for step, _ in recorded.points["train/cost"]]
    assert steps[0] <= 12
    assert {leg.step for leg in legs} <= set(steps)


def test_changed_settings_are_tags(legs: list[Leg]) -> None:
    recorded = legs[-1].recorded
    assert ("max_steps", "1000000") in recorded.select("select key, value from params")
    changed = ("resumed.max_steps", str(legs[-1].step))
    assert changed in recorded.select("select key, value from tags")


@pytest.mark.slow
def test_weights_are_those_of_a_training_that_nobody_stopped(
    legs: list[Leg], train: Any, read_weights: Any, runtimes: list[str]
) -> None:
    last = legs[-1]
    whole = train(*SETTINGS, f"--max_steps={last.step}", f"--runtime={runtimes[-1]}").wait()
    expected, found = read_weights((whole.logdir, last.step), (last.training.logdir, last.step))
    assert int(expected["global_step"]) == last.step
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_complete_training_is_measured_again(
    train: Any, locals_by_runtime: Any, record: Any, tmp_path: Path
) -> None:
    local = locals_by_runtime["legacy"]
    logdir = tmp_path / "log"
    shutil.copytree(str(local.logdir), str(logdir))
    before = record(logdir)
    flags = ["--epochs=4", "--learning_rate=0.5", "--log_every=5", "--summary_every=4"]
    flags += ["--checkpoint_every=20", "--run_name=local", "--runtime=legacy"]
    training = train(*flags, logdir=logdir).wait()
    assert training.code == 0, training.err
    assert training.err == ""
    first, accuracy, seconds, done = training.out.splitlines()[:4]
    assert first.startswith(f"the run in {logdir} is complete, at step 48; ")
    assert accuracy in local.out
    assert seconds.startswith("Total Time: ")
    assert done == "done"
    after = record(logdir)
    assert after.run == before.run
    assert after.checkpoints == before.checkpoints
    after.assert_one_training()
    curves = [tag for tag in before.points if tag != "params" and "hparams" not in tag]
    for tag in curves:
        assert after.points[tag] == before.points[tag]


def kill(training: Any) -> None:
    """Kills a training that has made some updates, and waits for who sends its record."""
    training.wait_until_it_says("^Step: 36,").send(signal.SIGKILL)
    assert training.left_running() == []
    assert training.code == -signal.SIGKILL


def test_killed_training_goes_on_from_its_last_checkpoint(train: Any, record: Any) -> None:
    flags = [*SETTINGS, "--checkpoint_every=10", "--noeval_in_chief", "--steps_per_loop=1"]
    training = train(*flags, ENDLESS)
    kill(training)
    before = record(training.logdir)
    assert before.run[1] == "FAILED"
    assert len(before.checkpoints) <= 6  # The oldest is deleted last.
    # It may die after it has written a checkpoint, and before the file `checkpoint` names that one.
    named = (training.logdir / "checkpoint").read_text("utf-8")
    step = int(re.findall(r'^model_checkpoint_path: ".*-(\d+)"$', named, re.M)[0])
    assert step % 10 == 0
    last = before.points["train/cost"][-1][0]
    # It may die between a step and saving it, or between saving it and writing its point.
    assert step - 1 <= last <= step + 10
    again = train(*flags, f"--max_steps={last + 5}", logdir=training.logdir).wait()
    assert again.code == 0, again.err
    assert f"resuming from step {step} in " in again.out
    after = record(training.logdir)
    assert after.run == (before.run[0], "FINISHED")
    after.assert_one_training()
    written = [*range(1, last + 1), *range(max(step, last) + 1, last + 6)]
    assert [n for n, _ in after.points["train/cost"]] == written


@pytest.mark.slow
def test_training_killed_before_its_first_checkpoint_begins_anew(train: Any, record: Any) -> None:
    training = train(*SETTINGS, ENDLESS, "--checkpoint_every=1000000", "--noeval_in_chief")
    kill(training)
    before = record(training.logdir)
    assert before.checkpoints == []
    again = train(*SETTINGS, "--max_steps=12", logdir=training.logdir).wait()
    assert again.code == 0, again.err
    assert "\nStep: 12," in "\n" + again.out  # After a line on points that stay in MLflow, if any.
    after = record(training.logdir)
    assert after.run == (before.run[0], "FINISHED")
    after.assert_one_training()
    assert after.points["train/cost"][-1][0] == 12
    assert after.checkpoints == [12]


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.endings
def test_cluster_that_was_stopped_goes_on(start: Any, record: Any, runtime: str) -> None:
    """Here the folder is the default one, in which all tasks have to meet."""
    flags = ["--dataset=digits", "--strategy=ps", "--num_workers=2", f"--runtime={runtime}"]
    training = start(*flags, ENDLESS)
    training.wait_until_it_says(r"^\[worker 0\] Step: ").send(signal.SIGINT).wait()
    assert training.code == 130
    assert training.left_running() == []
    assert "got SIGINT; stopping ps 0, worker 0, worker 1" in training.out
    assert len(os.listdir(training.folder / "runs")) == 1
    before = record(training.logdir)
    assert before.run[1] == "KILLED"
    step = before.checkpoints[-1]
    again = start(*flags, f"--max_steps={step + 24}", logdir=training.logdir).wait()
    assert again.code == 0, again.out
    assert f"[worker 0] resuming from step {step} in {training.logdir}" in again.out
    after = record(training.logdir)
    assert after.run == (before.run[0], "FINISHED")
    after.assert_one_training()
    assert after.checkpoints[-1] - step in ([24, 25] if runtime == "legacy" else [24])
