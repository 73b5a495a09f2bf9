"""The programs of docs/recipes.md run on both runtimes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.conftest import Training

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
_DEADLINE_SECS = 400.0
# What the test of each prints, and its bounds.
REACHED = {
    "gan.py": ("Distance", 0.0, 1.9),
    "chars.py": ("Perplexity", 1.1, 2.5),
    "vae.py": ("Bound", 20.0, 28.0),
    "digits.py": ("Accuracy", 0.85, 1.0),
}


def programs() -> dict[str, str]:
    """Returns the page's programs by the names that it gives them."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(zip(REACHED, found))


@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize("name", REACHED)
def test_a_recipe_learns(name: str, runtime: str, tmp_path: Path, start_program: Any) -> None:
    (tmp_path / name).write_text(programs()[name], "utf-8")
    argv = [sys.executable, name, "--logdir=logs", "--epochs=10", f"--runtime={runtime}"]
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    training = Training(argv, tmp_path, tmp_path / "logs", env, start_program)
    try:
        assert training.wait(_DEADLINE_SECS).code == 0, training.out + training.err
    finally:
        training.end()
    value, least, most = REACHED[name]
    found = re.findall(rf"Test-{value}: ([\d.]+)", training.out)
    assert found and least <= float(found[-1]) <= most, training.out
