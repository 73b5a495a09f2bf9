"""A few broken inputs through the real commands: exit code 2, one line, nothing left behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from compat.errors import UserError
from compat.scripts.reading import conversion
from tests.conftest import PACKAGES
from tests.fuzz.conftest import (
    CELLS,
    PYTHON2,
    PYTHON3,
    SCRIPT_TOKENS,
    WORKSHEETS,
    assert_is_a_line,
    changed,
    count_input,
)

pytestmark = pytest.mark.once

DEADLINE_SECS = 60
MNIST = ["experiments.mnist", "--dataset=digits"]
INPUTS = {
    "cluster.flags": b"--logdir=a\xff\n",
    "broken.npy": b"\x93NUMPY\x01\x00\x0c\x00{'descr': ('" + b"\0" * 8,
    "broken.py": b"# coding: rot13\nx = (\n",
    "broken.ipynb": b"[" * 99_999,
}
RUN = ["compat", "run"]
SEEDS = {"script.py": [PYTHON2, PYTHON3], "notebook.ipynb": [CELLS, WORKSHEETS]}
PROCESSES = 15  # Of each kind, where others have a hundred inputs.


@pytest.mark.parametrize(
    "words",
    [
        [*MNIST, "--flagfile=cluster.flags"],
        [*MNIST, "--strategy=ps", "--job_name=a\x1b[2J\nb", "--ps_hosts=a:1", "--worker_hosts=b:1"],
        ["experiments.classics.matpow", "--matrix_a=broken.npy"],
        [*RUN, "broken.py"],
        [*RUN, "--cluster", "ps=1,worker=1", "broken.ipynb"],
        [*RUN, "--hosts=a:1=\udcff:٣", "broken.py"],
    ],
    ids=lambda words: " ".join(words[:3]).encode("ascii", "replace").decode(),
)
def test_one_line_and_code_2(tmp_path: Path, words: list[str]) -> None:
    assert_refused(tmp_path, words, INPUTS)


@pytest.mark.parametrize("kind", ["script.py", "notebook.ipynb"])
def test_what_is_no_program(tmp_path: Path, kind: str) -> None:
    """A process each, and none of them runs what chance wrote: that does not compile."""
    draw = random.Random(0 if settings.default.derandomize else None)  # type: ignore[union-attr]
    number = settings.default.max_examples * PROCESSES // 100  # type: ignore[union-attr]
    for turn in range(number):
        folder = tmp_path / str(turn)
        folder.mkdir()
        raw = b""
        while begins(folder / kind, raw):
            code = bytes(draw.randrange(256) for _ in range(18))
            raw = changed(SEEDS[kind], SCRIPT_TOKENS, code)
        (folder / kind).unlink()
        assert_refused(folder, [*RUN, kind], {kind: raw})


def begins(path: Path, raw: bytes) -> bool:
    """Whether a script, or the first cell of a notebook, compiles once it is converted."""
    path.write_bytes(raw)
    try:
        for part in conversion.read(str(path))[:1]:
            part.code()
    except (UserError, SyntaxError):
        return False
    return True


def assert_refused(tmp_path: Path, words: list[str], inputs: dict[str, bytes]) -> None:
    """Runs a command; TensorFlow is one here that says so if it is loaded."""
    trap = tmp_path / "trap" / "tensorflow"
    trap.mkdir(parents=True)
    (trap / "__init__.py").write_text("raise SystemExit('TensorFlow was loaded')\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, raw in inputs.items():
        (folder / name).write_bytes(raw)
    count_input()
    done = subprocess.run(
        [sys.executable, "-B", "-m", *words],
        cwd=str(folder),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join([str(trap.parent), PACKAGES])),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_SECS,
    )
    said = done.stderr.decode("utf-8", "surrogateescape")
    assert (done.returncode, done.stdout) == (2, b""), said
    assert said.startswith("error: ")
    assert said.endswith("\n")
    assert_is_a_line(said[:-1])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == inputs
