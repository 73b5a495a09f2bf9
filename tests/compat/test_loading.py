"""TensorFlow is loaded without Keras, and Keras when it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import compat

if TYPE_CHECKING:
    from tests.conftest import RunProgram


def test_keras_is_loaded_when_it_is_used(run_program: RunProgram, programs: Path) -> None:
    report = run_program(programs / "loading.py")
    assert report == {"before": [], "shape": [None, 3], "optimizer": "SGD", "listed": True}


# Says how the environment is when TensorFlow's import begins, and goes no further.
BEGINS = """
import os, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "tensorflow":
            print(os.environ.get("GRPC_FAIL_FAST"), os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
            sys.exit()

sys.meta_path.insert(0, Finder)
from compat import tf1
print("not loaded yet")
tf1.Graph
"""


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "use_caller 2"),
        ({"GRPC_FAIL_FAST": "no", "TF_CPP_MIN_LOG_LEVEL": "0"}, "no 0"),
    ],
)
def test_how_tensorflow_reports_is_said_before_it_loads(given: dict[str, str], found: str) -> None:
    """Lost peers, and errors only: TensorFlow reads it only once; what the user has set stays."""
    names = ("GRPC_FAIL_FAST", "TF_CPP_MIN_LOG_LEVEL")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    packages = str(Path(compat.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", BEGINS],
        env={**kept, "PYTHONPATH": packages, **given},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.decode().splitlines() == ["not loaded yet", found]
