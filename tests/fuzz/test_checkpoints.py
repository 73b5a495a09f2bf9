"""Checkpoints from which a training goes on: the file that names them, and their own files.

TensorFlow reads them, which takes seconds to load; so one process reads all.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.fuzz.conftest import assert_is_a_line, changed, count_input

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = pytest.mark.once

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "compat" / "checkpoints" / "golden"
# TensorFlow's own, and ours with the values of an optimizer.
KINDS = ("original-tf1.15.5", "tf2.21.0-modern")
NAMES = [b'model_checkpoint_path: "%s"' % name for name in (b"", b"/", b"..", b"**a", b"a\\000")]
TOKENS = (
    b"\0",
    b"\xff",
    b'"',
    b"\n",
    b"\\",
    b"{",
    b"model_checkpoint_path: 3\n",
    b"..",
    b"/",
    b"*",
)


def two_checkpoints(golden: Path, folder: Path) -> Path:
    """Makes a folder of a golden checkpoint and, before it, of the same at an earlier step."""
    folder.mkdir()
    (newest,) = (path.stem for path in golden.glob("*.index"))
    names = ("model.ckpt-5", newest)
    for path in golden.glob(newest + ".*"):
        for name in names:
            shutil.copy(str(path), str(folder / path.name.replace(newest, name)))
    lines = [f'model_checkpoint_path: "{newest}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    (folder / "checkpoint").write_text("\n".join(lines) + "\n")
    return folder


def test_checkpoints(run_program: RunProgram, tmp_path: Path) -> None:
    draw = random.Random(0 if settings.default.derandomize else None)  # type: ignore[union-attr]
    inputs = {}
    for kind in KINDS:
        whole = two_checkpoints(GOLDEN / kind, tmp_path / kind)
        files = sorted(path.name for path in whole.iterdir())
        broken = [("checkpoint", raw) for raw in NAMES]
        for _ in range(settings.default.max_examples):  # type: ignore[union-attr]
            name = draw.choice(files)
            code = bytes(draw.randrange(256) for _ in range(18))
            broken.append((name, changed([(whole / name).read_bytes()], TOKENS, code)))
        inputs[str(whole)] = [(name, raw.hex()) for name, raw in broken]
        for _ in broken:
            count_input()
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps(inputs), encoding="utf-8")
    program = HERE / "programs" / "checkpoints.py"
    said = run_program(program, inputs=str(path))
    for line in (line for lines in said for line in lines):
        assert_is_a_line(line)
    assert said[0] == []  # Of those that are whole.
    assert any("trying the one before" in lines[0] for lines in said if len(lines) == 1)
    assert any("cannot be read" in lines[-1] for lines in said if lines)
