"""`--dry_run`: what a run begins with is shown, an update and an evaluation are made, no trace."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.conftest import Record, Training

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def dry_run(tmp_path: Path, start_program: Any) -> Any:
    """Runs a program of the tests by `--dry_run` in an empty folder."""

    def run(program: str, *flags: str) -> Training:
        argv = [sys.executable, str(PROGRAMS / program), "--dry_run", *flags]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        return Training(argv, tmp_path, None, env, start_program).wait()

    return run


@pytest.mark.parametrize(
    ("flags", "server"),
    [([], "this process"), (["--strategy=ps", "--num_ps=2"], "/job:ps/task:1")],
    ids=["alone", "cluster"],
)
def test_it_shows_what_a_run_begins_with(
    dry_run: Any, tmp_path: Path, runtime: str, flags: list[str], server: str
) -> None:
    done = dry_run("digits.py", f"--runtime={runtime}", "--hidden=8", "--logdir=logs", *flags)
    assert (done.code, done.err) == (0, "")
    assert re.search(
        r"^settings: batch_size=100, .*epochs=3, .*hidden=8; --print_config shows all\n", done.out
    )
    assert "\nexamples: 1079 for train, 359 for validation, 359 for test\n" in done.out
    assert "\nbatch: x float32 [100, 64], y int32 [100]\n" in done.out
    rows = [re.split("  +", line) for line in done.out.splitlines()]
    first = rows.index(["variable", "shape", "server", "bytes"])
    assert rows[first + 1 : first + 4] == [
        ["w", "64x10", server, "2,560"],
        ["5 others, such as of the optimizer", "5,136"],
        ["sum", "640 numbers are trained", "7,696"],
    ]
    # The loss of weights that are 0 is the logarithm of the number of labels, before the update.
    assert re.search(r"\nan update took [\d.]+ s.*\n  .*train/loss 2\.30259", done.out)
    found = re.search(r"\n  validation/loss ([\d.]+), validation/accuracy ([\d.]+)\n", done.out)
    assert found is not None
    assert 2.2 < float(found[1]) < 2.302
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stderr", "stdout"]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--hidden=0"], "--hidden=0 is too small; give 1 or more"),
        (
            ["--strategy=ps", "--job_name=worker", "--num_workers=1"],
            "--dry_run is of a whole run, and --job_name=worker of one of its tasks; leave out ",
        ),
    ],
)
def test_a_wrong_flag_is_one_line(dry_run: Any, flags: list[str], line: str) -> None:
    done = dry_run("digits.py", *flags)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert done.err.startswith(f"error: {line}")


def test_a_run_records_the_table(
    tmp_path: Path, start_program: Any, empty_store: Path, runtime: str
) -> None:
    shutil.copy(str(empty_store), str(tmp_path))
    argv = [sys.executable, str(PROGRAMS / "digits.py"), "--epochs=1", "--logdir=logs"]
    argv += [f"--runtime={runtime}", "--system_metrics_every=0"]
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = Training(argv, tmp_path, None, env, start_program).wait()
    assert (done.code, done.err) == (0, "")
    ((step, value),) = Record(tmp_path / "logs").points["model"]
    text = value.tensor.string_val[0].decode()
    assert step == 0
    assert text.startswith(
        "| variable | shape | server | bytes |\n|---|---|---|---|\n| w | 64x10 | "
    )
