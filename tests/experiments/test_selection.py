"""Which checkpoint is the best, when a training is to stop, and what of it outlives a kill."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compat.errors import UserError
from experiments.evaluation import best_checkpoint, stop_request
from experiments.evaluation.history import FILE, Evaluation, History, best, without_improvement
from experiments.evaluation.selection import Selection
from experiments.evaluation.stop_request import StopRequest

pytestmark = pytest.mark.once


def evaluated(*accuracies: float) -> list[Evaluation]:
    return [Evaluation(10 * (i + 1), 1.0, accuracy) for i, accuracy in enumerate(accuracies)]


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
    ],
)
def test_best_and_how_long_none_was_better(
    accuracies: list[float], best_step: int | None, in_vain: int
) -> None:
    found = best(evaluated(*accuracies))
    assert (found and found.step) == best_step
    assert without_improvement(evaluated(*accuracies)) == in_vain


def test_history_goes_on(tmp_path: Path) -> None:
    one, two, three = evaluated(0.5, 0.7, 0.6)
    history = History(str(tmp_path), -1)
    assert history.last_step == -1
    history.append(one)
    history.append(two)
    history.close()
    again = History(str(tmp_path), 25)
    assert again.evaluations == [one, two]
    again.append(three)
    again.close()
    lines = (tmp_path / FILE).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [10, 20, 30]


@pytest.mark.parametrize(("resume_step", "kept"), [(30, 3), (29, 2), (10, 1), (-1, 0)])
def test_history_of_a_training_that_was_cut_off_ends_there(
    tmp_path: Path, resume_step: int, kept: int
) -> None:
    history = History(str(tmp_path), -1)
    for evaluation in evaluated(0.5, 0.7, 0.6):
        history.append(evaluation)
    history.close()
    History(str(tmp_path), resume_step).close()
    assert len((tmp_path / FILE).read_text().splitlines()) == kept


@pytest.mark.parametrize(
    "torn", ['{"step": 2', '{"step": 20}\n', "[]\n", "\x00\n", '{"step": 1e999']
)
def test_history_that_was_torn_ends_before(tmp_path: Path, torn: str) -> None:
    (one,) = evaluated(0.5)
    history = History(str(tmp_path), -1)
    history.append(one)
    history.close()
    with (tmp_path / FILE).open("a") as file:
        file.write(torn)
    history = History(str(tmp_path), 100)
    assert history.evaluations == [one]
    history.append(Evaluation(20, 1.0, 0.6))
    history.close()
    assert len((tmp_path / FILE).read_text().splitlines()) == 2


def test_one_process_evaluates_a_training(tmp_path: Path) -> None:
    history = History(str(tmp_path), -1)
    with pytest.raises(UserError, match="is evaluated by another process; expected one"):
        History(str(tmp_path), -1)
    history.close()
    History(str(tmp_path), -1).close()


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


def test_selection(tmp_path: Path) -> None:
    said: list[str] = []
    with Selection(str(tmp_path), 2, -1, said.append) as selection:
        for evaluation in evaluated(0.5, 0.7, 0.6, 0.7):
            assert stop_request.read(str(tmp_path)) is None
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
        assert selection.last_step == 40
    reason = "validation accuracy 0.7000 of step 20 was not exceeded in 2 evaluations"
    assert said == [
        "Step: 10,  Validation-Cost: 1.0000,  Validation-Accuracy: 0.5000,  best",
        "Step: 20,  Validation-Cost: 1.0000,  Validation-Accuracy: 0.7000,  best",
        "Step: 30,  Validation-Cost: 1.0000,  Validation-Accuracy: 0.6000",
        "Step: 40,  Validation-Cost: 1.0000,  Validation-Accuracy: 0.7000",
        f"{reason}; asking the chief to end the training",
    ]
    assert stop_request.read(str(tmp_path)) == StopRequest(40, 2, reason)
    assert (tmp_path / "best" / "model.ckpt-20.index").exists()


@pytest.mark.parametrize("patience", [0, 3])
def test_no_request_without_need(tmp_path: Path, patience: int) -> None:
    with Selection(str(tmp_path), patience, -1, lambda _: None) as selection:
        for evaluation in evaluated(0.7, 0.6, 0.5):
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
    assert stop_request.read(str(tmp_path)) is None


def test_patience_outlives_a_restart(tmp_path: Path) -> None:
    for evaluation in evaluated(0.7, 0.6, 0.5):
        with Selection(str(tmp_path), 2, evaluation.step, lambda _: None) as selection:
            selection.take(checkpoint(tmp_path, evaluation.step), evaluation)
    request = stop_request.read(str(tmp_path))
    assert request is not None
    assert request.step == 30


def test_a_checkpoint_that_has_gone_is_passed_over(tmp_path: Path) -> None:
    said: list[str] = []
    gone = str(tmp_path / "model.ckpt-10")
    with Selection(str(tmp_path), 1, -1, said.append) as selection:
        selection.take(gone, Evaluation(10, 1.0, 0.5))
        assert selection.last_step == -1
    reason = "its files have gone"
    assert said[1:] == [f"the evaluation of {gone} is not kept ({reason}); the training goes on"]


@pytest.mark.parametrize(
    ("step", "patience", "stands"),
    [
        (40, 2, True),
        (50, 2, True),
        (40, 0, True),  # A chief that is not told how patient others are.
        (40, 1, True),
        (40, 3, False),
        (39, 2, False),  # It was made by a training that was cut off.
        (0, 0, False),
    ],
)
def test_a_request_stands_until_it_has_lost_its_reason(
    tmp_path: Path, step: int, patience: int, stands: bool
) -> None:
    request = StopRequest(40, 2, "enough")
    stop_request.write(str(tmp_path), request)
    expected = request if stands else None
    assert stop_request.standing(str(tmp_path), step, patience) == expected
    assert stop_request.read(str(tmp_path)) == expected
    assert files(tmp_path) == (["stop_request.json"] if stands else [])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"step": "x"}', "\x00", '{"step": 1e999}'])
def test_a_request_of_another_hand_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "stop_request.json").write_text(text)
    assert stop_request.read(str(tmp_path)) is None
