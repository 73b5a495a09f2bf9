"""An error in a person's own program is one line with theirs first, then their frames."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.launching.own_frames import described
from tests.experiments.conftest import Training

PROGRAM = """\
from dataclasses import dataclass
import numpy as np
from compat import tf, tf1
from experiments import Experiment, Settings, run

class Digits(Experiment):
    @dataclass(frozen=True)
    class Settings(Settings):
        batch_size: int = 5

    def data(self):
        return {"train": {"x": np.ones([20, 4], "float32"), "y": np.full([20], %(label)s, "int32")}}

    def build(self):
        self.w = tf.Variable(np.zeros([4, 3], "float32"), name="w")

    def loss(self, batch, training):
        logits = batch[%(key)r] @ self.w
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["y"], logits=logits)
        return tf.reduce_mean(losses)

run(Digits)
"""


def raised(tmp_path: Path, body: str, **names: Any) -> Exception:
    """Returns what a function `loss` of a file digits.py raises, given these arguments."""
    file = tmp_path / "digits.py"
    file.write_text(f"def loss({', '.join(names)}):\n{textwrap.indent(body, '    ')}\n")
    module: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), module)
    try:
        module["loss"](**names)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("body", "names", "line"),
    [
        (
            "return batch['image']",
            {"batch": {"images": 1, "labels": 2}},
            "KeyError: 'image'; batch has images, labels",
        ),
        (
            "return batch['x']",
            {"batch": (1, 2)},
            "TypeError: tuple indices must be integers or slices, not str; batch is a tuple: name "
            "what the dataset has, as by map(lambda x, y: {'x': x, 'y': y})",
        ),
        (
            "return values['cost']",
            {"values": {"loss": 1.0}},
            "KeyError: 'cost'; values has loss",
        ),
        (
            "raise ValueError('{{function_node __inference_1}} too long.  Values: 1 2')",
            {},
            "ValueError: too long",
        ),
        (
            "return x.numpy()",
            {"x": np.ones(2)},
            "AttributeError: 'numpy.ndarray' object has no attribute 'numpy'; a tensor has its "
            "value when the graph runs: return it among the outputs of loss(), or use tf.print",
        ),
    ],
)
def test_the_own_line_comes_first(tmp_path: Path, body: str, names: Any, line: str) -> None:
    first, *frames = str(described(raised(tmp_path, body, **names))).splitlines()
    assert first == f"error: digits.py:2, in loss: {line}"
    place = f'  File "{tmp_path / "digits.py"}", line 2, in loss'
    assert frames[-3:] == [place, f"    {body}", "--traceback shows all frames"]


def test_an_error_of_ours_keeps_its_traceback() -> None:
    try:
        np.zeros([2]).reshape([3])
    except ValueError as error:
        frame = error.__traceback__
        assert frame is not None
        assert described(error.with_traceback(frame.tb_next)) is None


@pytest.mark.parametrize(
    ("label", "key", "text", "reason"),
    [
        ("0", "image", "logits =", "KeyError: 'image'; batch has x, y"),
        (
            "5",
            "x",
            "losses =",
            "InvalidArgumentError: Received a label value of 5 which is outside the valid range of "
            "[0, 3); labels are from 0 to the number of logits - 1",
        ),
    ],
    ids=["while it is built", "while it runs"],
)
def test_a_program_shows_its_own_line(
    tmp_path: Path, start_program: Any, runtime: str, label: str, key: str, text: str, reason: str
) -> None:
    line = next(i for i, each in enumerate(PROGRAM.splitlines(), 1) if text in each)
    (tmp_path / "digits.py").write_text(PROGRAM % {"label": label, "key": key})
    argv = [sys.executable, "digits.py", f"--runtime={runtime}", f"--logdir={tmp_path / 'logs'}"]
    done = Training(argv, tmp_path, None, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program).wait()
    assert done.code == 1
    shown = done.err[done.err.index("error: digits.py") :].splitlines()
    assert shown[0] == f"error: digits.py:{line}, in loss: {reason}"
    assert shown[-1] == "--traceback shows all frames"
