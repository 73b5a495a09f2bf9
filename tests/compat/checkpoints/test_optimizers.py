"""An optimizer of TensorFlow 1.x and one of Keras 3 train on from each other's slots, alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compat
from compat._tensorflow import version

HAS_KERAS_3 = int(version().split(".")[0]) == 2 and int(version().split(".")[1]) >= 16
pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.feature("checkpoint exchange")]
PROGRAM = Path(__file__).with_name("optimizers.py")


@pytest.mark.skipif(not HAS_KERAS_3, reason="TensorFlow has had Keras 3 since 2.16")
def test_the_losses_go_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(Path(compat.__file__).resolve().parents[1])),
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 6
    for name, (expected, *others) in found.items():
        for losses in others:
            np.testing.assert_allclose(losses, expected, rtol=1e-5, err_msg=name)
