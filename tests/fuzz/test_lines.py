"""Three hundred command lines, run: no traceback, no hang, no 0 of what trained nothing."""

from __future__ import annotations

import contextlib
import io
import random
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from absl import flags

from compat import __main__ as compat_main
from compat.errors import UserError
from experiments.launching import command_line
from experiments.mnist import MNIST
from experiments.settings.flags import define_flags
from experiments.training import main
from tests.fuzz.conftest import assert_is_a_line, attempt, count_input, forget

pytestmark = pytest.mark.once
PARSED = 300
READING = ("check", "migrate")
DEADLINE_SECS = 200  # Of a busy machine; most lines take one.

SCRIPT = """import tensorflow as tf
w = tf.Variable(1.0)
train = tf.train.GradientDescentOptimizer(0.1).minimize(w * w)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    s.run(train)
print("trained")
"""
# A command by what ends it well, in its output; "" where it trains nothing.
TRAINING = ["--dataset=digits", "--max_steps=2", "--strategy=local", "--logdir=log"]
SEEDS: list[tuple[int, str, list[str]]] = [
    (
        20,
        "Test-Accuracy",
        ["experiments.mnist", *TRAINING, "--log_every=1", "--batch_size=50", "--seed=3"]
        + ["--learning_rate=0.1", "--eval_in_chief", "--clip_norm=2", "--run_name=a"],
    ),
    (40, "", ["experiments.classics.matpow", "--matrix_a=a.npy", "--matrix_b=a.npy", "--n=2"]),
    (15, "", ["experiments.export.predict", "log", "--input=a.npy", "--checkpoint=last"]),
    (10, "", ["experiments.export", "log", "--format=saved_model", "--output=out"]),
    (15, "", ["experiments.report", "log", "--output=out"]),
    (10, "", ["experiments.launch", "--num_ps=1", "--num_workers=1", "--dry_run", "--", "a.py"]),
    (30, "trained", ["compat", "run", "--era=auto", "--runtime=legacy", "a.py"]),
    (3, "", ["compat", "check", "--format=json", "a.py"]),
    (3, "", ["compat", "migrate", "a.py", "--output=b.py", "--to=v1"]),
    (15, "", ["compat", "convert-checkpoint", "log/model.ckpt-2", "out", "--like=a.npy"]),
]
# Of absl, of Python's own habits, and what people mistake for flags.
OTHERS = ["--run_with_pdb=0", "--only_check_args", "--nosync=1", "--stderrthreshold=x", "-v=x"]
OTHERS += ["--flagfile=a.py", "--undefok=seed", "--noundefok", "--helpxml", "--pdb", "--", "-", ""]
OTHERS += [
    "--warm_start=s3://b/x",
    "--config=a.npy",
    "--profile_file=/nowhere/x",
    "--alsologtostderr",
]
OTHERS += ["--only_check_args=false", "--run_with_profiling=no", "--use_cprofile_for_profiling"]
OTHERS += ["--showprefixforinfo=2", "--verbosity=loud", "--log_dir=a.npy", "--pdb_post_mortem=0"]
OTHERS += [
    "--logger_levels=a",
    "--xml_output_file=x",
    "--test_srcdir=",
    "--help=no",
    "--logtostderr=3",
]
VALUES = ["", "-1", "0", "nan", "inf", "1e300", "9" * 30, "2.5", "é", "a\nb", "../x", "s3://b/x"]
VALUES += [
    "/dev/null",
    "a.npy",
    "log",
    "x" * 5000,
    "[",
    "%s",
    "'",
    "\udcff",
    " ",
    "true",
    "none",
    "*",
]
IS_HELP = re.compile(r"usage:|^flags:|<AllFlags>|\nflags:\n", re.M)


def line(draw: random.Random, words: list[str]) -> list[str]:
    """Returns a command line that somebody might have mistyped, in one to three places."""
    command = 2 if words[0] == "compat" else 1
    found, rest = words[:command], words[command:]
    for _ in range(draw.choice((1, 1, 2, 3))):
        at = draw.randrange(len(rest) + 1)
        name, equals, _ = rest[at].partition("=") if at < len(rest) else ("", "", "")
        kind = draw.randrange(6)
        if kind == 0 or at == len(rest):
            rest.insert(at, draw.choice(OTHERS))
        elif kind == 1:
            del rest[at]
        elif kind == 2:
            rest[at] = name + draw.choice(("", "=", "==1", "x=1"))
        elif kind == 3:
            rest[at : at + 1] = [name, draw.choice(VALUES)]
        else:
            rest[at] = f"{name}={draw.choice(VALUES)}" if equals else draw.choice(VALUES)
    return [*found, *rest]


@pytest.fixture(scope="module")
def values() -> flags.FlagValues:
    """The flags of `experiments.mnist`."""
    own = flags.FlagValues()
    define_flags(MNIST.Settings, MNIST.presets, values=own)
    return own


def test_lines_up_to_the_run(values: flags.FlagValues, tmp_path: Path, monkeypatch: Any) -> None:
    """Those of an experiment in this process, which ends where the run would begin."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mnist"])
    (tmp_path / "a.py").write_text(SCRIPT)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\0\xff")
    draw, begun = random.Random(0), 0
    for _ in range(PARSED):
        _, *argv = line(draw, list(SEEDS[0][2]))
        code, said = attempt(parse, values, argv)
        assert code in (None, 0, 2), argv
        assert code != 2 or (said.startswith("error: ") and said.count("\n") == 1), (argv, said)
        assert code != 0 or IS_HELP.search(said), (argv, said)
        begun += code is None
    assert begun > PARSED // 10


def parse(values: flags.FlagValues, argv: list[str]) -> tuple[Any, str]:
    """Returns the exit code, None where the run would begin, and what was printed."""
    forget(values)
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        try:
            command_line.parse(["mnist", *argv], values)
            main.read_flags(MNIST, values)
        except UserError as error:
            assert_is_a_line(str(error))
            return 2, f"error: {error}\n"
        except SystemExit as ending:
            return ending.code, said.getvalue()
    return None, said.getvalue()


@pytest.mark.parametrize("words", [words for *_, words in SEEDS if words[1] in READING])
def test_lines_that_read_a_script(words: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    """In this process, since nothing of TensorFlow is loaded."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\0\xff")
    for _ in range(100):
        (tmp_path / "a.py").write_text(SCRIPT)
        argv = line(draw, list(words))[1:]
        code, said = attempt(command, argv)
        assert code in (0, 1, 2), (argv, said)
        assert "Traceback" not in said, (argv, said)
        assert said or code == 0, argv


def command(argv: list[str]) -> tuple[Any, str]:
    """Runs `python -m compat ARGV`; returns the exit code, and what was printed."""
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        try:
            return compat_main.main(argv), said.getvalue()
        except SystemExit as ending:
            return ending.code, said.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "sign", "words"), SEEDS, ids=[words[-1][0] for *_, words in SEEDS]
)
def test_lines(
    count: int,
    sign: str,
    words: list[str],
    trained: Path,
    tmp_path: Path,
    start_program: Any,
) -> None:
    draw = random.Random(" ".join(words))
    wrong = []
    for number in range(count):
        argv = line(draw, list(words))
        folder = tmp_path / str(number)
        shutil.copytree(str(trained), str(folder))
        if argv[0] == "experiments.mnist":
            shutil.rmtree(str(folder / "log"))
        code, said = run(folder, argv, start_program)
        count_input()
        # As a script, that is one which does nothing.
        found = complaint(code, said, "" if "/dev/null" in argv else sign)
        if found:
            wrong.append(f"{argv}: {found}\n{said[-1500:]}")
        shutil.rmtree(str(folder))
    assert not wrong, "\n\n".join(wrong)


def complaint(code: int | None, said: str, sign: str) -> str:
    """Returns what is wrong with how a command ended, or nothing."""
    if code is None:
        return "hangs"
    if "Traceback" in said:
        return "a traceback"
    if code < 0:
        return f"died of signal {-code}"
    if code == 0 and sign and sign not in said and not IS_HELP.search(said):
        return "trained nothing, and ended with 0"
    if code and not re.search(r"^error: .", said, re.M):
        return f"ended with {code} without a word"
    return ""


def run(folder: Path, argv: list[str], start_program: Any) -> tuple[int | None, str]:
    """Runs a command; returns its exit code, None after the deadline, and what it printed."""
    with (folder / "out").open("wb") as out:
        words = [sys.executable, "-m", *argv]
        process = start_program(words, cwd=folder, stdout=out, stderr=out)
        try:
            code = process.wait(DEADLINE_SECS)
        except Exception:
            process.kill()
            code = None
    return code, (folder / "out").read_text("utf-8", "replace")


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, empty_store: Path, start_program: Any
) -> Path:
    """A folder with what the lines name: a script, an array, the log folder of a run."""
    import numpy as np

    folder = tmp_path_factory.mktemp("trained")
    shutil.copy(str(empty_store), str(folder))
    (folder / "a.py").write_text(SCRIPT)
    np.save(str(folder / "a.npy"), np.eye(3, dtype="f4"))
    code, said = run(folder, ["experiments.mnist", *TRAINING], start_program)
    assert code == 0, said
    return folder
