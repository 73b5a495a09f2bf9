"""Functions of the TensorFlow 1.x kind, as they are: on the legacy runtime, or lifted."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.feature("lifted TF1 model")


def test_pieces_of_a_variable_are_on_different_servers(placed: Any) -> None:
    assert placed["embedding"] == {"table/part_0": "ps 0", "table/part_1": "ps 1"}


def test_pieces_of_a_variable_train_as_one(placed: Any) -> None:
    """Three rows of four ones: the cost is the mean square, 1, its gradient 1/6."""
    first, second = placed["embedding_values"]
    assert first["cost"] == 1.0
    assert second["cost"] == pytest.approx((5 / 6) ** 2)


def test_a_variable_can_start_as_a_random_tensor(placed: Any) -> None:
    assert placed["drawn"] == {"weights": "ps 0", "bias": "ps 1"}
    first, second = placed["drawn_values"]
    assert 0.97 < first["stddev"] < 1.03
    assert second["cost"] < 0.1 * first["cost"]  # Drawn once, not at each update.


def test_tasks_are_named_without_a_setter(placed: Any) -> None:
    """The sum of 200 ones, squared; the gradient of each weight is 400."""
    assert placed["explicit"] == {"weights": "ps 2"}
    first, second = placed["explicit_values"]
    assert first["cost"] == 40000.0
    assert second["cost"] == pytest.approx((200 * 0.6) ** 2, rel=1e-4)


def test_what_is_made_outside_of_the_scope_would_train_alone(placed: Any, runtime: str) -> None:
    if runtime == "modern":
        sentence = (
            "{} was made outside of `with compat.device(...)`, so this task would train alone; "
            "make variables and steps inside it"
        )
        made = ["the global step", "variable outside"]
        assert placed["outside"] == [sentence.format(name) for name in made]


def test_two_functions_share_what_get_variable_made(placed: Any) -> None:
    """One update of 3 ones by 0.5 in training is seen by the evaluation."""
    assert placed["shared"] == {"net/weights": "ps 0"}
    assert placed["shared_values"]["cost"] == 1.5


def test_names_are_those_of_one_graph(placed: Any) -> None:
    assert sorted(placed["names"]) == ["Variable", "w", "w_1", "w_2"]
