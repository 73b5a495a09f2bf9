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
            print(os.environ.get("GRPC_FAIL_FAST"))
            sys.exit()

sys.meta_path.insert(0, Finder)
from compat import tf1
print("not loaded yet")
tf1.Graph
"""


@pytest.mark.parametrize(("given", "found"), [({}, "use_caller"), ({"GRPC_FAIL_FAST": "no"}, "no")])
def test_a_lost_peer_is_to_be_reported_before_tensorflow_loads(
    given: dict[str, str], found: str
) -> None:
    """As TensorFlow reads it only once; what the user has set stays."""
    kept = {name: value for name, value in os.environ.items() if name != "GRPC_FAIL_FAST"}
    packages = str(Path(compat.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", BEGINS],
        env={**kept, "PYTHONPATH": packages, **given},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.decode().splitlines() == ["not loaded yet", found]
