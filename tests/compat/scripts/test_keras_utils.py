"""What `tf.compat.v1.keras.utils` had in Keras 2 is there beside Keras 3, with the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat._tensorflow import version

if TYPE_CHECKING:
    from tests.conftest import RunProgram

HAS_KERAS_3 = version().startswith("2.") and int(version().split(".")[1]) >= 16
pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not HAS_KERAS_3, reason="before 2.16 TensorFlow has Keras 2"),
]
PROGRAM = Path(__file__).parents[1] / "programs" / "keras_utils.py"


@pytest.fixture(scope="module")
def seen(run_program: RunProgram) -> Any:
    return run_program(PROGRAM)


def test_a_module_has_the_variables_of_its_decorated_method(seen: Any) -> None:
    names = ["count:0", "scope/w:0"]
    assert seen["tracks_a_module"] == [names, names[1:], 12, [96, 96]]


def test_a_layer_of_keras_3_trains_them(seen: Any) -> None:
    """The losses are those of TensorFlow 2.15, as are the random numbers below."""
    losses, count = seen["tracks_a_layer_of_keras_3"]
    assert losses == pytest.approx([541.0, 66.723, 7364.293], rel=1e-4)
    assert count == 5


def test_random_numbers_are_alike_in_graphs_and_eagerly(seen: Any) -> None:
    constant, counted = seen["draws_alike"]
    assert constant == [[-0.301, 0.5186], [0.8355, 0.9163], [True, True], 0]
    assert counted == [[-0.301, 0.5186], [0.1501, 0.6399], [True, True], 2]


def test_misuse_is_refused(seen: Any) -> None:
    assert seen["refuses"] == [
        "operation_seed 0 was used before; set it to a number that was not, so that random numbers "
        "are the same in a graph and in eager mode",
        "mode is 'all', expected one of constant, num_random_ops",
        "variable scope/w has shape (4, 3), and (4, 2) was given; give the same, or another name",
        "track_tf1_style_variables decorates a method of int; decorate one of a tf.Module or of a "
        "layer of Keras",
        "get_or_create_layer('dense') is called outside of a method that track_tf1_style_variables "
        "decorates; decorate the method that calls it",
    ]
