"""Old scripts, written here one habit each, run as a user runs them."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

import compat

PACKAGES = str(Path(compat.__file__).resolve().parents[1])
DEADLINE_SECS = 120


@dataclass(frozen=True)
class Ran:
    """How a script ended, and what it wrote."""

    code: int
    out: str
    err: str


RunScript = Callable[..., Ran]


def _has(package: str, path: str) -> bool:
    """Whether an installed package has a file or folder; loads nothing."""
    spec = importlib.util.find_spec(package)
    return spec is not None and (Path(str(spec.origin)).parent / path).exists()


# What the scripts' own TensorFlow had: 1.15 still has it, and then it serves itself.
HAS_CONTRIB = _has("tensorflow_core", "contrib")
# Packages of the extra `scripts` that this TensorFlow needs, and a name that each of them serves.
NEEDED = {
    **({} if HAS_CONTRIB else {"tf_slim": "contrib.slim.conv2d"}),
    "tensorflow_estimator": "estimator.Estimator",
    **({"tf_keras": "layers.dense"} if _has("keras", "src/ops") else {}),  # Where it is Keras 3.
}


@pytest.fixture
def run_script(tmp_path: Path, start_program: Callable[..., Any]) -> RunScript:
    """Writes a script into a folder of its own and runs it by `python -m compat run`.

    Where TensorFlow is loaded already, unless it runs `alone`.
    """

    def run(
        text: str | None,
        *arguments: str,
        options: tuple[str, ...] = (),
        name: str = "script.py",
        env: dict[str, str] | None = None,
        seconds: float = DEADLINE_SECS,
        **how: Any,
    ) -> Ran:
        words = [*arguments]
        if text is not None:
            (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
            words = [name, *words]
        command = [sys.executable, "-m", "compat", "run", *options, *words]
        environment = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3"}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = start_program(
                command,
                cwd=tmp_path,
                env={**environment, **(env or {})},
                stdout=out,
                stderr=err,
                **how,
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            written = [os.pread(file.fileno(), 1 << 24, 0).decode("utf-8") for file in (out, err)]
            return Ran(code, *written)

    return run


@pytest.fixture
def run_step(tmp_path: Path, start_program: Callable[..., Any]) -> Callable[[str, str], Ran]:
    """Runs a program that was migrated, by plain Python on a runtime; `out` has its errors too."""

    def run(text: str, runtime: str) -> Ran:
        (tmp_path / "step.py").write_text(text, encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3"}
        argv = [sys.executable, "step.py", f"--runtime={runtime}"]
        with open(tmp_path / "out", "wb") as out:
            process = start_program(argv, cwd=tmp_path, env=env, stdout=out, stderr=out)
        try:
            code = process.wait(timeout=DEADLINE_SECS)
        finally:
            process.kill()
        return Ran(code, (tmp_path / "out").read_text(encoding="utf-8"), "")

    return run


@pytest.fixture(scope="session")
def mnist_folder(tmp_path_factory: Any) -> Path:
    """Four IDX files as scripts look for them: few and made up, but with something to learn."""
    import gzip

    import numpy as np

    from compat.datasets import idx

    folder: Path = tmp_path_factory.mktemp("MNIST_data")
    random = np.random.RandomState(1)
    patterns = random.randint(0, 256, size=(10, 28, 28))
    for part, count in (("train", 6000), ("t10k", 500)):
        labels = random.randint(0, 10, size=count).astype(np.uint8)
        noise = random.randint(-40, 41, size=(count, 28, 28))
        images = np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            with gzip.open(str(folder / f"{part}-{kind}-ubyte.gz"), "wb", compresslevel=1) as file:
                file.write(idx.encode(array))
    return folder
