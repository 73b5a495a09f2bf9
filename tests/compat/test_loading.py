"""TensorFlow is loaded without Keras, and Keras when it is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import RunProgram


def test_keras_is_loaded_when_it_is_used(run_program: RunProgram, programs: Path) -> None:
    report = run_program(programs / "loading.py")
    assert report == {"before": [], "shape": [None, 3], "optimizer": "SGD"}
