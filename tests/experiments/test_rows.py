"""Tables are looked up by each row once, and updated as NumPy does it; clicks are parsed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat.errors import UserError
from experiments.datasets import criteo
from experiments.datasets.clicks import Law
from experiments.evaluation.metrics import AUC, Calibration, Collisions, LogLoss
from experiments.recommender import Recommender

PROGRAM = Path(__file__).parent / "programs" / "rows.py"
SIZES = [5, 4]
RATE = 0.1
NAMES = ("adagrad", "ftrl", "lazy_adam", "rowwise_adagrad")


@pytest.fixture(scope="module")
def made(run_program: Any, runtimes: list[str]) -> dict[str, Any]:
    """What the program printed, by runtime."""
    return {name: run_program(PROGRAM, runtime=name) for name in runtimes}


class Row:
    """A row of a table, updated by an optimizer as its paper writes it."""

    def __init__(self, name: str, values: list[float]) -> None:
        self.values = np.array(values, np.float64)
        self.name, self.square, self.mean = name, 0.0 * self.values, 0.0 * self.values
        self.square += 0.0 if name == "lazy_adam" else 0.1

    def update(self, gradient: np.ndarray, number: int) -> None:
        """Makes update `number` of the table, from 1."""
        if self.name == "lazy_adam":
            self.mean = 0.9 * self.mean + 0.1 * gradient
            self.square = 0.999 * self.square + 0.001 * gradient**2
            rate = RATE * math.sqrt(1 - 0.999**number) / (1 - 0.9**number)
            self.values -= rate * self.mean / (np.sqrt(self.square) + 1e-8)
            return
        before = self.square
        squared = gradient**2
        self.square = before + (squared.mean() if self.name == "rowwise_adagrad" else squared)
        if self.name == "ftrl":  # Without a penalty; `mean` is the linear term.
            change = (np.sqrt(self.square) - np.sqrt(before)) / RATE
            self.mean = self.mean + gradient - change * self.values
            self.values = -self.mean * RATE / np.sqrt(self.square)
        else:
            self.values -= RATE * gradient / np.sqrt(self.square)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_updated_as_by_numpy(made: dict[str, Any], runtime: str, name: str) -> None:
    found = made[runtime][name]
    rows = {
        (feature, value): Row(name, found["first"][value][feature])
        for feature, size in enumerate(SIZES)
        for value in range(size)
    }
    for number, (ids, gradients) in enumerate(zip(found["ids"], found["gradients"]), 1):
        sums: dict[tuple[int, int], Any] = {}
        for example, gradient in zip(ids, gradients):
            for feature, value in enumerate(example):
                key = feature, value % SIZES[feature]
                sums[key] = sums.get(key, 0.0) + np.array(gradient[feature])
        assert found["sent"][number - 1] == len(sums)  # Each row once, and no other.
        for key, total in sums.items():
            rows[key].update(total, number)
    for (feature, value), row in rows.items():
        assert found["last"][value][feature] == pytest.approx(row.values, abs=2e-5)


def test_gradients_of_both_parts_are_sparse(made: dict[str, Any], runtime: str) -> None:
    assert all(made[runtime][name]["sparse"] == [True, True] for name in NAMES)


def test_rows_have_one_accumulator_of_rowwise_adagrad(made: dict[str, Any], runtime: str) -> None:
    found = made[runtime]
    (shape,) = found["rowwise_adagrad"]["slots"].values()
    assert shape == [5]  # Rows of the first part of nine.
    assert [5, 3] in found["adagrad"]["slots"].values()


def test_both_runtimes_begin_and_end_alike(made: dict[str, Any], runtimes: list[str]) -> None:
    for name in NAMES:
        for moment in ("first", "last"):
            values = [np.array(made[runtime][name][moment]) for runtime in runtimes]
            assert values[0] == pytest.approx(values[-1], abs=1e-6)


def _had_rows(before: Any) -> int:
    return int(np.sum(before))


def test_values_that_were_seen_twice_have_rows(made: dict[str, Any], runtime: str) -> None:
    found = made[runtime]["mapped"]
    known = [_had_rows(one["before"]) for one in found]
    assert known[:2] == [0, 0]
    for first in (0, 12, 24):  # Of eight values that are in each of twelve batches.
        those = known[first : first + 12]
        assert those == sorted(those)
        assert those[-1] == 8
    for one, following in zip(found[:11], found[1:]):
        assert one["known"][:4] == following["before"]


def test_rows_are_taken_from_those_that_nobody_reads(made: dict[str, Any], runtime: str) -> None:
    found = made[runtime]["mapped"]
    assert found[11]["used"] == 0.5  # Eight of sixteen.
    assert found[35]["used"] == 1
    # The third eight took the rows of the first, of those that both buckets have.
    assert _had_rows(found[36]["before"]) <= 1
    assert _had_rows(found[47]["before"]) == 8


def test_row_begins_as_that_of_its_feature(made: dict[str, Any], runtime: str) -> None:
    admitted = 0
    for one in made[runtime]["mapped"]:
        assert one["known"][4] == [False, False]
        values = np.array(one["found"])
        new = np.array(one["known"][:4]) & ~np.array(one["before"])
        shared = np.broadcast_to(values[4], values[:4].shape)
        assert (values[:4][new] == shared[new]).all()
        admitted += new.sum()
        if one["used"] == 1:  # All others were trained, but the one that never is.
            assert one["fresh"] == new.sum() + 1
    assert admitted >= 24


def test_both_runtimes_map_alike(made: dict[str, Any], runtimes: list[str]) -> None:
    maps = [[one["known"] for one in made[runtime]["mapped"]] for runtime in runtimes]
    assert maps[0] == maps[-1]


def test_lines_are_parsed_as_they_were_made(made: dict[str, Any], runtime: str) -> None:
    found = made[runtime]["parsed"]
    one, other = found["made_labels"]
    # All by one worker; the second of two has the second file or, of one file, each second line.
    assert found["labels"] == [(one + other)[:10], other, one[1::2]]
    counts = np.array(found["made_numbers"])
    assert np.array(found["numbers"]) == pytest.approx(np.log1p(counts), abs=1e-5)
    hashes = np.array(found["categories"])
    assert (hashes >= 0).all() and (hashes < criteo.FINGERPRINTS).all()
    values = np.array(found["made_values"])
    same_value, same_hash = (part.ravel()[:, None] == part.ravel() for part in (values, hashes))
    assert (same_value == same_hash).all()


def test_both_runtimes_hash_alike(made: dict[str, Any], runtimes: list[str]) -> None:
    hashes = [made[runtime]["parsed"]["categories"] for runtime in runtimes]
    assert hashes[0] == hashes[-1]


def test_law_is_the_best_predictor() -> None:
    law = Law(values=100)
    made = law.make(3, 20000)
    assert (made.labels == law.make(3, 20000).labels).all()
    best = {"labels": made.labels, "predictions": made.chances}
    worse = {"labels": made.labels, "predictions": made.chances**1.5}
    losses = []
    for outputs in (best, worse):
        metric = LogLoss()
        metric.update(outputs)
        losses.append(metric.result())
    assert losses[0] < losses[1]
    auc, calibration = AUC(), Calibration()
    for metric in (auc, calibration):
        metric.update(best)
    assert 0.8 < auc.result() < 0.95
    assert calibration.result() == pytest.approx(1, abs=0.03)


def test_calibration_is_of_sums() -> None:
    metric = Calibration()
    for labels, predictions in (([1, 0], [0.5, 0.5]), ([1, 0], [0.8, 0.6])):
        metric.update({"labels": np.array(labels), "predictions": np.array(predictions)})
    assert metric.result() == pytest.approx(2.4 / 2)
    metric.reset()
    metric.update({"labels": np.zeros(2, int), "predictions": np.ones(2)})
    assert math.isnan(metric.result())


def test_collisions_are_counted_once_for_each_value() -> None:
    metric = Collisions([4, 2])
    for ids in ([[0, 0], [4, 1], [0, 2]], [[1, 1], [4, 1]]):
        metric.update({"categories": np.array(ids)})
    # 0 and 4 share a row of the first, 0 and 2 one of the second; both have one other value.
    assert metric.result() == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"admit_after": 2}, "--admit_after=2 is of --ids=mapped; add that"),
        ({"forget_after": 9}, "--forget_after=9 is of --ids=mapped; add that"),
        (
            {"examples": 5000, "data_dir": "clicks"},
            "--examples=5000 is of made-up examples; leave --data_dir out, or",
        ),
        (
            {"ids": "mapped", "strategy": "ps", "communication_period": 5},
            "--ids=mapped needs one map that all workers update; leave",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Recommender.Settings(**values)


@pytest.mark.parametrize("text", ["64,x", "", "64,", "0", "-1"])
def test_hidden_units_are_a_list_of_numbers(text: str) -> None:
    with pytest.raises(UserError, match=f"--hidden={text} is not a list of positive whole numbers"):
        Recommender.Settings(hidden=text)


def test_folder_without_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no file test"):
        criteo.files(str(tmp_path), "test")


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test").touch()
    with pytest.raises(UserError, match="test is empty; write into it lines of a label"):
        criteo.files(str(tmp_path), "test")


GOOD = "0\t-1\t1.5\t1e3" + "\t" * 36 + "\r\n"
LABEL = "2" + "\t" * 39 + "\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1\t2\n", "2 columns, not 40"),
        (LABEL, "label '2', neither 0 nor 1"),
        ("1\tmany" + "\t" * 38 + "\n", "'many' for a number in column 2"),
    ],
)
def test_malformed_line_is_named(line: str, reason: str, tmp_path: Path) -> None:
    Law(values=50).write(str(tmp_path), {"train-0": 40, "train-1": 40})
    paths = criteo.files(str(tmp_path), "train")
    with open(paths[1], "a", encoding="ascii") as file:
        file.write(GOOD)
    assert criteo.malformed(paths) is None
    with open(paths[1], "a", encoding="ascii") as file:
        file.write(line)
    assert str(criteo.malformed(paths)).startswith(f"line 42 of {paths[1]} has {reason}; write ")


def test_run_on_a_malformed_line_is_one_line(start: Any, runtime: str, tmp_path: Path) -> None:
    folder = tmp_path / "clicks"
    Law(values=50).write(str(folder), {"train": 40, "validation": 20, "test": 20})
    with (folder / "train").open("a", encoding="ascii") as file:
        file.write(GOOD + LABEL)
    flags = [f"--data_dir={folder}", f"--runtime={runtime}", "--batch_size=42", "--max_steps=9"]
    ended = start(*flags, module="experiments.recommender", logdir=tmp_path / "logs").wait()
    assert ended.code == 2
    found = [text for text in ended.err.splitlines() if text.startswith("error: ")]
    assert len(found) == 1
    assert found[0].startswith(f"error: line 42 of {folder / 'train'} has label '2', neither 0")
    assert "Traceback" not in ended.err


def test_fewer_lines_than_a_batch(start: Any, runtime: str, tmp_path: Path) -> None:
    folder = tmp_path / "clicks"
    Law(values=50).write(str(folder), {"train": 40, "validation": 20, "test": 20})
    flags = [f"--data_dir={folder}", f"--runtime={runtime}", "--batch_size=41"]
    ended = start(*flags, module="experiments.recommender", logdir=tmp_path / "logs").wait()
    assert ended.code == 2
    assert "error: the training stream has no batch for worker 0: " in ended.err
