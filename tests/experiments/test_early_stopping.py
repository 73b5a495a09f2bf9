"""A request to stop a run: when it holds, and when its file is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.evaluation import early_stopping
from experiments.evaluation.early_stopping import StopRequest

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("step", "patience", "stands"),
    [
        (40, 2, True),
        (50, 2, True),
        (40, None, True),  # A chief that was not given what an evaluator has.
        (40, 0, False),  # Without early stopping, it resumes.
        (40, 1, True),
        (40, 3, False),
        (39, 2, False),  # It is of a run that was cut off.
        (0, None, False),
    ],
)
def test_a_request_stands_until_it_has_lost_its_reason(
    tmp_path: Path, step: int, patience: int | None, stands: bool
) -> None:
    request = StopRequest(40, 2, "enough")
    early_stopping.request(str(tmp_path), request)
    expected = request if stands else None
    assert early_stopping.standing(str(tmp_path), step, patience) == expected
    assert early_stopping.read(str(tmp_path)) == expected
    assert (tmp_path / "stop_request.json").exists() == stands


@pytest.mark.parametrize("text", ["", "{", "[]", '{"step": "x"}', "\x00", '{"step": 1e999}'])
def test_a_request_of_another_hand_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "stop_request.json").write_text(text)
    assert early_stopping.read(str(tmp_path)) is None
