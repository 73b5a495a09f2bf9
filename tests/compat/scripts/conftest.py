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

from compat.cluster import ports
from tests.conftest import PACKAGES

DEADLINE_SECS = 120


@dataclass(frozen=True)
class Ran:
    """How a script ended, and what it wrote."""

    code: int
    out: str
    err: str


RunScript = Callable[..., Ran]


def run_python(
    *argv: str, cwd: Path | None = None, seconds: float = 800
) -> subprocess.CompletedProcess[str]:
    """Runs Python with the copy under test, not the one in this folder, to its end."""
    return subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PACKAGES},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
    )


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
            code = None
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            written = [os.pread(file.fileno(), 1 << 24, 0).decode("utf-8") for file in (out, err)]
            assert code is not None, f"it still ran after {seconds:g} s: {' '.join(written)}"
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


@pytest.fixture
def run_pair(tmp_path: Path, start_program: Callable[..., Any]) -> Callable[[str, str], str]:
    """Runs a program that was migrated as a parameter server and a worker, which both end well.

    Its ports 2222 and 2223 of "localhost" become free ones. Returns what the worker prints.
    """

    def run(text: str, runtime: str) -> str:
        reserved = {job: ports.reserve() for job in ("ps", "worker")}
        for old, port in zip(("localhost:2222", "localhost:2223"), reserved.values()):
            text = text.replace(old, port.address)
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        processes = []
        for job, port in reserved.items():
            env, pass_fds = port.pass_to_child()
            argv = [sys.executable, "train.py", f"--runtime={runtime}", f"--job_name={job}"]
            env = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3", **env}
            with open(tmp_path / job, "wb") as out:
                options = {"stdout": out, "stderr": out, "pass_fds": pass_fds}
                processes.append(start_program(argv, cwd=tmp_path, env=env, **options))
            port.release()
        try:
            codes = [process.wait(timeout=DEADLINE_SECS) for process in reversed(processes)]
            said = (tmp_path / "worker").read_text(encoding="utf-8")
            assert codes == [0, 0], said
        finally:
            for process in processes:
                process.kill()
        return said

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
