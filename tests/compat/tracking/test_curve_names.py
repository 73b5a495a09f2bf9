from __future__ import annotations

import pytest

from compat.tracking.mlflow.curve_names import NAME_LENGTH, CurveNames, mlflow_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [("train/cost", "train/cost"), ("../loss: x/y", "loss_ x/y"), ("é", "é"), ("..", "_")]
    + [("n" * 300, "n" * NAME_LENGTH)],
)
def test_a_name_is_one_that_mlflow_takes(name, shown):
    assert mlflow_name(name) == shown


@pytest.mark.parametrize(
    "given",
    [["a>b", "a\\b", "a_b", "a_b_2"], ["..", "", "_"], ["n" * 300, "n" * 301, "n" * NAME_LENGTH]],
)
def test_each_curve_has_a_name_of_its_own_after_a_restart_as_well(given):
    names = CurveNames()
    shown = [names.of(name) for name in given]
    assert len(set(shown)) == len(given)
    assert max(map(len, shown)) <= NAME_LENGTH
    again = CurveNames(given[:2])
    assert [again.of(name) for name in given] == shown


def test_the_curve_that_has_a_name_already_is_known():
    names = CurveNames(["a>b"])
    assert names.before("x") is None
    assert names.before("a_b") == "a>b"
    assert names.of("a_b") == "a_b_2"
