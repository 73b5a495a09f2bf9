"""Checkpoints from which a training goes on: the file that names them, and their own files.

TensorFlow reads them, which takes seconds to load; so one process reads all.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.fuzz.conftest import assert_is_a_line, changed, count_input

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = pytest.mark.once

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "compat" / "checkpoints" / "golden" / "original-tf1.15.5"
FILES = sorted(path.name for path in GOLDEN.iterdir())
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


def test_checkpoints(run_program: RunProgram, tmp_path: Path) -> None:
    draw = random.Random(0 if settings.default.derandomize else None)  # type: ignore[union-attr]
    inputs = [("checkpoint", raw.hex()) for raw in NAMES]
    for _ in range(settings.default.max_examples):  # type: ignore[union-attr]
        name = draw.choice(FILES)
        code = bytes(draw.randrange(256) for _ in range(18))
        inputs.append((name, changed([(GOLDEN / name).read_bytes()], TOKENS, code).hex()))
        count_input()
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps(inputs), encoding="utf-8")
    program = HERE / "programs" / "checkpoints.py"
    for said in filter(None, run_program(program, whole=str(GOLDEN), inputs=str(path))):
        assert_is_a_line(said)
