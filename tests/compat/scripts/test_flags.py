"""`tf.app.flags` as before 1.5, without TensorFlow: a process for each command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import compat

PROGRAM = """
from compat.scripts.shims import flags
flags.DEFINE_string("job_name", "", "job")
flags.DEFINE_integer("task_index", 0, "index")
flags.DEFINE_boolean("sync", False, "sync")
flags.DEFINE_bool("issync", True, "sync")
flags.DEFINE_float("rate", 0.5, "rate")
flags.DEFINE_string("rate_text", 3, "a default of another type")
FLAGS = flags.FLAGS
"""
SHOW = "print(FLAGS.job_name, FLAGS.task_index, FLAGS.sync, FLAGS.issync, FLAGS.rate)"


def run(code: str, *arguments: str, fails: bool = False) -> str:
    root = str(Path(compat.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + code, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in ((1,) if fails else (0, 3)), done.stderr
    return (done.stderr if fails else done.stdout).strip()


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ([], " 0 False True 0.5"),
        (["--job_name=ps", "--task_index", "2"], "ps 2 False True 0.5"),
        (["-job_name=ps", "-task_index=1"], "ps 1 False True 0.5"),
        (["--unknown=4", "--job_name", "ps", "--other"], "ps 0 False True 0.5"),
        (["word", "--job=ps", "--task", "3"], "ps 3 False True 0.5"),
        (["--sync", "True", "--issync=False"], " 0 True False 0.5"),
        (["--sync", "--noissync", "--rate", "2"], " 0 True False 2.0"),
        (["--sync=0", "--job_name", "true"], "true 0 False True 0.5"),
    ],
)
def test_parsed_when_asked_and_tolerant(arguments: list[str], seen: str) -> None:
    assert run(SHOW, *arguments) == seen.strip()


def test_all_values_at_once() -> None:
    text = run("print(sorted(FLAGS.__flags.items()))", "--job_name=ps")
    assert text == (
        "[('issync', True), ('job_name', 'ps'), ('rate', 0.5), ('rate_text', 3), "
        "('sync', False), ('task_index', 0)]"
    )


def test_run_hands_on_what_is_no_flag_and_exits_with_the_result() -> None:
    code = "def main(argv):\n    print(argv[1:], FLAGS.rate)\n    return 3\nflags.run(main)"
    assert run(code, "--rate=1", "word") == "['word'] 1.0"


def test_a_wrong_value_is_one_line() -> None:
    said = "FATAL Flags parsing error: flag --task_index=x: "
    for code in ("flags.run(print)", "print(FLAGS.rate)"):
        line = run(code, "--task_index=x", fails=True)
        assert line.startswith(said)
        assert "\n" not in line


def test_a_value_can_be_set() -> None:
    assert run("FLAGS.rate = 7.0; print(FLAGS.rate, 'rate' in FLAGS)") == "7.0 True"


def test_what_absl_brought_is_there() -> None:
    assert run("flags.DEFINE_enum('kind', 'a', ['a', 'b'], '')\nprint(FLAGS.kind)") == "a"
