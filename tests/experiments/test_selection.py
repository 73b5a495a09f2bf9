"""Which checkpoint is the best, its folder, when a run is to stop, and what outlives a kill."""

from __future__ import annotations

import functools
import json
import math
import os
from pathlib import Path

import pytest

from compat.errors import UserError
from experiments.evaluation import best_checkpoint, early_stopping
from experiments.evaluation.early_stopping import StopRequest
from experiments.evaluation.selection import (
    FILE,
    ChiefSelection,
    Evaluation,
    Selection,
    best,
    read,
    without_improvement,
)

pytestmark = pytest.mark.once
MONITOR = ("validation/accuracy", "max")
NAN, INF = math.nan, math.inf


def evaluated(*accuracies: float) -> list[Evaluation]:
    return [
        Evaluation(10 * (i + 1), {"validation/loss": 1.0, "validation/accuracy": accuracy})
        for i, accuracy in enumerate(accuracies)
    ]


def opened(logdir: Path, resume_step: int) -> Selection:
    return Selection(str(logdir), *MONITOR, 0, resume_step)


def checkpoint(logdir: Path, step: int, content: str = "") -> str:
    """Writes files as a checkpoint has them; returns their prefix."""
    logdir.mkdir(exist_ok=True)
    prefix = logdir / f"model.ckpt-{step}"
    for suffix in ("index", "data-00000-of-00001"):
        Path(f"{prefix}.{suffix}").write_text(content or f"{suffix} of {step}")
    return str(prefix)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("accuracies", "best_step", "in_vain"),
    [
        ([], None, 0),
        ([0.5], 10, 0),
        ([0.5, 0.6, 0.7], 30, 0),
        ([0.7, 0.6, 0.65], 10, 2),
        ([0.5, 0.7, 0.7, 0.7], 20, 2),  # As good is not better.
        ([0.5, 0.7, 0.6, 0.8, 0.1], 40, 1),
        ([0.0, 0.0], 10, 1),
        ([NAN, 0.5, NAN, INF, -INF], 20, 3),
        ([NAN, INF], None, 2),
    ],
)
def test_best_and_how_long_none_was_better(
    accuracies: list[float], best_step: int | None, in_vain: int
) -> None:
    for mode, sign in (("max", 1), ("min", -1)):
        evaluations = evaluated(*(sign * accuracy for accuracy in accuracies))
        found = best(evaluations, MONITOR[0], mode)
        assert (found and found.step) == best_step
        assert without_improvement(evaluations, MONITOR[0], mode) == in_vain


def test_an_evaluation_without_the_monitor_is_not_the_best() -> None:
    other = Evaluation(5, {"validation/loss": 0.1})
    found = best([other, *evaluated(0.5)], *MONITOR)
    assert found is not None
    assert found.step == 10
    assert without_improvement([*evaluated(0.5), Evaluation(20, other.values)], *MONITOR) == 1


def test_history_is_valid_json_whatever_the_values(tmp_path: Path) -> None:
    values = {"validation/a": NAN, "validation/b": INF, "validation/c": -INF, "validation/d": 0.1}
    with opened(tmp_path, -1) as history:
        history.append(Evaluation(10, values))

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not valid JSON")

    line = json.loads((tmp_path / FILE).read_text(), parse_constant=refuse)
    assert line["validation/d"] == 0.1
    with opened(tmp_path, 10) as again:
        pass
    assert repr(again.evaluations) == repr([Evaluation(10, values)])


def test_history_goes_on(tmp_path: Path) -> None:
    one, two, three = evaluated(0.5, 0.7, 0.6)
    with opened(tmp_path, -1) as history:
        assert history.last_step == -1
        history.append(one)
        history.append(two)
    with opened(tmp_path, 25) as again:
        assert again.evaluations == [one, two]
        again.append(three)
    lines = (tmp_path / FILE).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [10, 20, 30]


@pytest.mark.parametrize(("resume_step", "kept"), [(30, 3), (29, 2), (10, 1), (-1, 0)])
def test_history_of_a_training_that_was_cut_off_ends_there(
    tmp_path: Path, resume_step: int, kept: int
) -> None:
    with opened(tmp_path, -1) as history:
        for evaluation in evaluated(0.5, 0.7, 0.6):
            history.append(evaluation)
    with opened(tmp_path, resume_step):
        pass
    assert len((tmp_path / FILE).read_text().splitlines()) == kept


@pytest.mark.parametrize(
    "torn", ['{"step": 2', '{"step": 20}\n', "[]\n", "\x00\n", '{"step": 1e999']
)
def test_history_that_was_torn_ends_before(tmp_path: Path, torn: str) -> None:
    (one,) = evaluated(0.5)
    with opened(tmp_path, -1) as history:
        history.append(one)
    with (tmp_path / FILE).open("a") as file:
        file.write(torn)
    with opened(tmp_path, 100) as history:
        assert history.evaluations == [one]
        history.append(Evaluation(20, one.values))
    assert len((tmp_path / FILE).read_text().splitlines()) == 2


def test_one_process_evaluates_a_training(tmp_path: Path) -> None:
    busy = "is evaluated by another process; expected one"
    with opened(tmp_path, -1), pytest.raises(UserError, match=busy):
        opened(tmp_path, -1)
    with opened(tmp_path, -1):
        pass


def test_selection(tmp_path: Path) -> None:
    said: list[str] = []
    with Selection(str(tmp_path), *MONITOR, 2, -1, said.append) as selection:
        for evaluation in evaluated(0.5, 0.7, 0.6, 0.7):
            assert early_stopping.read(str(tmp_path)) is None
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
        assert selection.last_step == 40
    reason = "validation/accuracy did not improve on 0.7000, of step 20, in 2 evaluations"
    assert said == [
        "Step: 10,  Validation-Loss: 1.0000,  Validation-Accuracy: 0.5000,  best",
        "Step: 20,  Validation-Loss: 1.0000,  Validation-Accuracy: 0.7000,  best",
        "Step: 30,  Validation-Loss: 1.0000,  Validation-Accuracy: 0.6000",
        "Step: 40,  Validation-Loss: 1.0000,  Validation-Accuracy: 0.7000",
        f"{reason}; requesting the chief to stop the run",
    ]
    assert early_stopping.read(str(tmp_path)) == StopRequest(40, 2, reason)
    assert (tmp_path / "best" / "model.ckpt-20.index").exists()


@pytest.mark.parametrize("patience", [0, 3])
def test_no_request_without_need(tmp_path: Path, patience: int) -> None:
    with Selection(str(tmp_path), *MONITOR, patience, -1, lambda _: None) as selection:
        for evaluation in evaluated(0.7, 0.6, 0.5):
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
    assert early_stopping.read(str(tmp_path)) is None


def test_patience_outlives_a_restart(tmp_path: Path) -> None:
    for evaluation in evaluated(0.7, 0.6, 0.5):
        with Selection(str(tmp_path), *MONITOR, 2, evaluation.step, lambda _: None) as selection:
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
    request = early_stopping.read(str(tmp_path))
    assert request is not None
    assert request.step == 30


def test_a_checkpoint_that_has_gone_is_passed_over(tmp_path: Path) -> None:
    said: list[str] = []
    gone = str(tmp_path / "model.ckpt-10")
    with Selection(str(tmp_path), *MONITOR, 1, -1, said.append) as selection:
        selection.take(gone, *evaluated(0.5))
        assert selection.last_step == -1
    reason = "its files have gone"
    assert said[1:] == [f"the evaluation of {gone} is not kept ({reason}); the run continues"]


def test_the_least_is_the_best_by_another_monitor(tmp_path: Path) -> None:
    said: list[str] = []
    losses = (0.5, 0.0004, NAN, 0.3)
    with Selection(str(tmp_path), "validation/loss", "min", 2, -1, said.append) as selection:
        for number, loss in enumerate(losses, 1):
            evaluation = Evaluation(10 * number, {"validation/loss": loss})
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
    assert said == [
        "Step: 10,  Validation-Loss: 0.5000,  best",
        "Step: 20,  Validation-Loss: 4.000e-04,  best",
        "Step: 30,  Validation-Loss: nan",
        "Step: 40,  Validation-Loss: 0.3000",
        "validation/loss did not improve on 4.000e-04, of step 20, in 2 evaluations; requesting "
        "the chief to stop the run",
    ]
    assert (tmp_path / "best" / "model.ckpt-20.index").exists()


def test_a_run_that_is_never_finite_stops(tmp_path: Path) -> None:
    with Selection(str(tmp_path), *MONITOR, 2, -1, lambda _: None) as selection:
        for evaluation in evaluated(NAN, NAN):
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
    request = early_stopping.read(str(tmp_path))
    assert request is not None
    assert request.reason == "validation/accuracy was not finite in 2 evaluations"
    assert not (tmp_path / "best").exists()


def test_a_chief_leaves_the_run_to_an_evaluator(tmp_path: Path) -> None:
    said: list[str] = []
    select = functools.partial(Selection, str(tmp_path), *MONITOR, 0, say=said.append)
    first, second, third, fourth = evaluated(0.5, 0.4, 0.6, 0.7)
    chief = ChiefSelection(select, -1, said.append)
    chief.take(checkpoint(tmp_path, first.step), first)
    chief.take(checkpoint(tmp_path, second.step), second, "Step: 20,  Loss: 0.1")
    with select(second.step) as evaluator:  # It finds the log folder free, and holds it.
        assert [evaluation.step for evaluation in evaluator.evaluations] == [10, 20]
        chief.take(checkpoint(tmp_path, third.step), third)
    chief.take(checkpoint(tmp_path, fourth.step), fourth)
    values = "Validation-Loss: 1.0000,  Validation-Accuracy: 0."
    assert said == [
        f"Step: 10,  {values}5000,  best",
        f"Step: 20,  Loss: 0.1,  {values}4000",
        "another process evaluates this run's checkpoints, and keeps the best",
        f"Step: 30,  {values}6000",
        f"Step: 40,  {values}7000",
    ]
    assert (tmp_path / "best" / "model.ckpt-10.index").exists()
    assert [evaluation.step for evaluation in read(str(tmp_path))] == [10, 20]


def test_an_unknown_monitor_or_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mode 'least' does not say whether .* set mode to 'max'"):
        Selection(str(tmp_path), "validation/loss", "least", 0, -1)
    (evaluation,) = evaluated(0.5)
    selection = Selection(str(tmp_path), "loss", "min", 0, -1, lambda _: None)
    with selection, pytest.raises(UserError) as error:
        selection.take(checkpoint(tmp_path, 10), evaluation)
    assert str(error.value) == (
        "monitor 'loss' is not a value of an evaluation; set monitor to one of "
        "validation/accuracy, validation/loss"
    )


def test_a_worse_checkpoint_does_not_replace_the_best_after_a_restart(tmp_path: Path) -> None:
    """Asynchronous workers train on while the chief evaluates; it resumes from the checkpoint."""
    for step, accuracy in ((1000, 0.9), (2000, 0.5)):
        with Selection(str(tmp_path), *MONITOR, 0, max(1000, step - 1000), lambda _: None) as again:
            prefix = checkpoint(tmp_path, step)
            again.take(prefix, Evaluation(best_checkpoint.step_of(prefix), {MONITOR[0]: accuracy}))
    assert files(tmp_path / "best")[-1] == "model.ckpt-1000.index"


def test_best_checkpoint_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    for step in (10, 20):
        prefix = best_checkpoint.keep(checkpoint(tmp_path, step), str(folder))
        assert prefix == str(folder / f"model.ckpt-{step}")
        data = f"model.ckpt-{step}.data-00000-of-00001"
        assert files(folder) == ["checkpoint", data, f"model.ckpt-{step}.index"]
        assert (folder / data).read_text() == f"data-00000-of-00001 of {step}"
        assert (
            f'model_checkpoint_path: "model.ckpt-{step}"\n' in (folder / "checkpoint").read_text()
        )


@pytest.mark.parametrize("gone", ["index", "data-00000-of-00001"])
def test_best_checkpoint_stays_if_the_new_one_is_not_whole(tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "best"
    best_checkpoint.keep(checkpoint(tmp_path, 10), str(folder))
    os.remove(f"{checkpoint(tmp_path, 20)}.{gone}")
    with pytest.raises(FileNotFoundError):
        best_checkpoint.keep(str(tmp_path / "model.ckpt-20"), str(folder))
    assert "model.ckpt-10" in (folder / "checkpoint").read_text()
    assert (folder / "model.ckpt-10.index").exists()


def test_best_checkpoint_has_nothing_else_and_leaves_the_users_files(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    folder.mkdir()
    for name in ("model.ckpt-5.index", "model.ckpt-5.data-00000-of-00001.tmp", "notes.txt"):
        (folder / name).touch()
    best_checkpoint.keep(checkpoint(tmp_path, 10), str(folder))
    assert "notes.txt" in files(folder)
    assert not [name for name in files(folder) if "ckpt-5" in name]


def test_checkpoint_is_held_while_it_is_measured(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    prefix = checkpoint(tmp_path, 10)
    (tmp_path / "being_evaluated").mkdir()
    (tmp_path / "being_evaluated" / "model.ckpt-5.index").touch()  # A killed process's.
    with best_checkpoint.held(prefix, str(tmp_path)) as held:
        for suffix in ("index", "data-00000-of-00001"):
            os.remove(f"{prefix}.{suffix}")
        assert len(files(tmp_path / "being_evaluated")) == 2
        best_checkpoint.keep(held, str(folder))
    assert (folder / "model.ckpt-10.index").read_text() == "index of 10"
    assert files(tmp_path) == ["best"]


def test_checkpoint_that_has_gone_is_not_held(tmp_path: Path) -> None:
    gone = best_checkpoint.held(str(tmp_path / "model.ckpt-10"), str(tmp_path))
    with pytest.raises(FileNotFoundError), gone:
        pass
    assert files(tmp_path) == []
