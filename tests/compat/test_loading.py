"""TensorFlow is loaded without Keras, and Keras when it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import compat

if sys.version_info >= (3, 8):
    from importlib import metadata
else:  # Drop it with Python 3.7.
    import importlib_metadata as metadata

if TYPE_CHECKING:
    from tests.conftest import RunProgram


def test_keras_is_loaded_when_it_is_used(run_program: RunProgram, programs: Path) -> None:
    report = run_program(programs / "loading.py")
    assert report == {"before": [], "shape": [None, 3], "optimizer": "SGD", "listed": True}


# Says how the environment is when TensorFlow's import begins, which packages it will not find, and
# goes no further.
BEGINS = """
import os, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        hidden = [name for name, module in sys.modules.items() if module is None]
        if name == "tensorflow" and "keras.optimizers" in hidden:
            print(os.environ.get("GRPC_FAIL_FAST"), os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
            print(*sorted({"h5py", "scipy.sparse"}.intersection(hidden)))
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
    """Lost peers, and errors only: TensorFlow reads it only once; what the user has set stays.

    What only its unused Keras imports is left out.
    """
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
    begin, reported, hidden = done.stdout.decode().splitlines()
    assert (begin, reported) == ("not loaded yet", found)
    release = tuple(map(int, metadata.version("tensorflow").split(".")[:2]))
    if release < (2, 5) or release > (2, 11):  # Between these it was taken apart.
        assert hidden == ("h5py scipy.sparse" if release > (2, 11) else "")
