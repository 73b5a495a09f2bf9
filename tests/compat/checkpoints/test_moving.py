"""An original checkpoint of 2016 is brought over as docs/checkpoints.md says, and goes on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

import compat
from compat import datasets
from compat._tensorflow import version

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = [pytest.mark.once, pytest.mark.slow]
HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "checkpoints.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```sh\n(.*?)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
CONVERSIONS = [text for command, text in SHOWN if "convert-checkpoint" in command]
STEPS = 300
HAS_KERAS_3 = tuple(map(int, version().split(".")[:2])) >= (2, 16)
SERVING = """
import numpy, tensorflow
served = tensorflow.saved_model.load("served").signatures["serving_default"]
data = numpy.load("digits.npz")
found = served(input_x_input=tensorflow.constant(data["test_images"]))["probabilities"].numpy()
print((found.argmax(1) == data["test_labels"].argmax(1)).mean())
"""
_DROPPED = ("MLFLOW_TRACKING_URI", "TF_CONFIG", "TF_CPP_MIN_LOG_LEVEL")


def run(*argv: str, folder: Path) -> str:
    """Runs Python; returns what it printed, also on standard error."""
    env = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    env["PYTHONPATH"] = str(Path(compat.__file__).resolve().parents[1])  # The copy under test.
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=str(folder),
        env=dict(env, MLFLOW_DISABLE_TELEMETRY="true"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
    )
    return done.stdout.decode()


class Moved(NamedTuple):
    """What came of the page's commands, and a copy of `new` from before its training went on."""

    folder: Path
    accuracy: float
    said: list[str]


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    folder = tmp_path_factory.mktemp("moved")
    digits = datasets.load("digits", None)
    np.savez(
        str(folder / "digits.npz"),
        images=digits.train.images.reshape([-1, 784]).astype(np.float32) / 255,
        labels=np.eye(10)[digits.train.labels],
        test_images=digits.test.images.reshape([-1, 784]).astype(np.float32) / 255,
        test_labels=np.eye(10)[digits.test.labels],
    )
    original = {"logdir": "old", "steps": STEPS, "format": 2, "data_path": "digits.npz"}
    printed = run(str(HERE / "original.py"), json.dumps(original), folder=folder)
    (renames,) = re.findall(r"```text\n(# renames.txt.*?)```", PAGE, re.DOTALL)
    (folder / "renames.txt").write_text(renames, encoding="utf-8")
    (model,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "new_model.py").write_text(model, encoding="utf-8")
    said = []
    for command, text in SHOWN:
        if not HAS_KERAS_3 and re.search("new_model|weights", command):
            said.append(text)
            continue
        if "--logdir=new" in command:
            shutil.copytree(str(folder / "new"), str(folder / "copy"))
        said.append(run(*shlex.split(command)[1:], folder=folder))
    return Moved(folder, float(printed.splitlines()[-1]), said)


def test_the_page_shows_what_the_conversion_says(moved: Moved) -> None:
    converted = [
        said for (command, _), said in zip(SHOWN, moved.said) if "convert-checkpoint" in command
    ]
    assert len(converted) == 5
    assert converted == CONVERSIONS


def test_tensorflow_alone_serves_the_model(moved: Moved) -> None:
    assert (
        abs(float(run("-c", SERVING, folder=moved.folder).splitlines()[-1]) - moved.accuracy) < 1e-6
    )


def test_the_page_shows_what_the_trainings_say(moved: Moved) -> None:
    def plain(text: str) -> list[str]:
        return [re.sub(r"/\S*/|\d+\.\d+", "#", line) for line in text.splitlines()]

    for (command, text), said in zip(SHOWN, moved.said):
        if "experiments.mnist" in command:
            assert set(plain(text)) - {"..."} <= set(plain(said)), said


def test_the_training_goes_on_with_the_accuracy_of_the_old_program(
    moved: Moved, run_program: RunProgram, runtime: str
) -> None:
    assert moved.accuracy > 0.5
    logdir = str(moved.folder / "copy")
    step, accuracy = run_program(HERE / "measure.py", runtime=runtime, logdir=logdir)
    assert step == STEPS
    assert abs(accuracy - moved.accuracy) < 1e-6


def test_the_program_goes_on_on_the_legacy_runtime_too(moved: Moved) -> None:
    """The page's training was on the modern one, where there is one."""
    flags = [f"--max_steps={STEPS}", "--runtime=legacy", "--logdir=copy"]
    preset = ["--preset=2016", "--dataset=digits"]
    said = run("-m", "experiments.mnist", *preset, *flags, folder=moved.folder)
    assert f"the run in {moved.folder}/copy is complete, at step {STEPS};" in said
    (tested,) = re.findall("Test-Accuracy: (.*)", said)
    assert re.search(rf"{moved.accuracy:2.2f}($| \((best and )?last)", tested)
