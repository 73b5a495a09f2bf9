"""The command line of `python -m compat check`: what it reads, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from compat.errors import UserError
from compat.scripts.commands.check import main
from tests.compat.scripts.conftest import run_python

ROOT = Path(__file__).resolve().parents[3]
RIGHT = "import tensorflow as tf\ntf.multiply(1, 2)\n"
SERVED = "import tensorflow as tf\ntf.mul(1, 2)\n"
CHANGES = "import tensorflow as tf\ntf.nn.dropout(x, 0.75)\n"
FAILS = "import tensorflow as tf\ntf.contrib.of_my_own.layer(x)\n"


def command(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "compat", "check", *args, cwd=cwd)


@pytest.mark.parametrize(("text", "code"), [(RIGHT, 0), (SERVED, 0), (CHANGES, 1), (FAILS, 1)])
def test_exit_code_is_one_if_something_fails_or_changes(
    text: str, code: int, tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) == code


def test_command_says_what_it_found_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(SERVED, encoding="utf-8")
    done = command("old.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "old.py:2:1: note: tf.mul is gone since TensorFlow 1.0; compat run serves it with "
        "tf.multiply [renamed]\n\n"
        "     1 served     gone; compat run serves it\n"
        "1 file, 1 finding; all of it runs under python -m compat run\n"
    )


def test_command_takes_no_other_path(tmp_path: Path) -> None:
    done = command(str(tmp_path / "nothing.py"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"error: path .*nothing\.py is neither a file nor a folder; .*\n", done.stderr
    )


@pytest.mark.parametrize("args", [[], ["--format=xml", "."], ["--no-such-option", "."]])
def test_wrong_usage_is_code_2(args: list[str]) -> None:
    with pytest.raises(UserError, match="; python -m compat check --help says more$") as caught:
        main(args)
    assert caught.value.exit_code == 2


def test_help_tells_formats_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--help"])
    assert ending.value.code == 0
    assert "{json,sarif,text}" in capsys.readouterr().out.replace("\n", "")


def test_checking_loads_no_tensorflow_and_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"{SERVED}open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    code = (
        "import sys; from compat.scripts.commands.check import main;"
        f"main([{str(path)!r}]); print('tensorflow' in sys.modules)"
    )
    assert run_python("-c", code).stdout.endswith("False\n")
    assert not (tmp_path / "ran").exists()


def test_folder_is_walked_in_order_for_scripts_and_notebooks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("b/x.py", "a.py", "b/y.ipynb", "c.txt", ".git/z.py", "b/__pycache__/z.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        cells = [{"cell_type": "code", "source": SERVED}]
        text = json.dumps({"cells": cells}) if name.endswith(".ipynb") else SERVED
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main([str(tmp_path), str(tmp_path / "a.py")]) == 0
    out = capsys.readouterr().out
    found = [line.split(": note")[0] for line in out.splitlines() if ": note" in line]
    expected = ["a.py:2:1", "b/x.py:2:1", "b/y.ipynb [cell 1]:2:1"]
    assert found == [str(tmp_path / place) for place in expected]
    assert "3 files, 3 findings" in out


def test_folder_without_scripts_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no \*\.py or \*\.ipynb file"):
        main([str(tmp_path)])


def test_notebook_is_one_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["tf.mul"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import tensorflow as tf"]},
        {"cell_type": "code", "source": ["this is no code"]},
        {"cell_type": "code", "source": ["def f():\n", "  return tf.mul(1, 2)"]},
    ]
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path} [cell 2]:1:")
    assert lines[0].endswith("[unreadable]")
    assert lines[1].startswith(f"{path} [cell 3]:2:10: note: tf.mul is gone")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.py", b"x = 1\ndef f(:\n  print 'x'\n"),
        ("open.py", b"x = (((\n"),
        ("deep.py", b"x = " + b"-" * 9999 + b"1\n"),
        ("binary.py", b"\x89PNG\r\n\x00\x00"),
        ("large.py", b"x = 1\n" * 200_000),
        ("broken.ipynb", b'{"cells": [{"cell_type": "code", "source": 3}]}'),
        ("text.ipynb", b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}'),
        ("empty.ipynb", b""),
        ("nested.ipynb", b"[" * 99_999),
    ],
)
def test_unreadable_file_is_one_finding(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "old.py").write_text(SERVED, encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    lines = [line for line in out.splitlines() if name in line]
    assert len(lines) == 1
    assert re.match(rf".*/{name}( \[cell 1\])?:\d+:\d+: error: .* \[unreadable\]$", lines[0])
    assert "2 files, 2 findings" in out
    assert err == ""


def test_error_of_syntax_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fissix")
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ny = 2\nz = = 3\n", encoding="utf-8")
    assert main([str(path)]) == 1
    expected = f"{path}:3:1: error: neither Python 3 nor Python 2 [unreadable]"
    assert capsys.readouterr().out.splitlines()[0] == expected


def test_long_expressions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("x = " + " + ".join(["1"] * 700) + "\n", encoding="utf-8")
    assert main([str(path)]) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "script.py").write_text(RIGHT, encoding="utf-8")
    assert main([str(tmp_path)]) == 0
    with pytest.raises(UserError, match="is neither a file nor a folder"):
        main([str(tmp_path / "pipe.py")])


def test_page_shows_what_is_printed(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    script, output = (
        re.search(rf"```{language}\n(.*?)```", page, re.DOTALL) for language in ("python", "text")
    )
    assert script is not None
    assert output is not None
    (tmp_path / "train.py").write_text(script[1], encoding="utf-8")
    done = command("train.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == output[1]


def test_rules_are_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "old.py"
    script.write_text(f"{CHANGES}tf.mul(x, open('/tmp/y'))\n", encoding="utf-8")
    assert main([str(script), "--skip=dropout"]) == 0
    assert re.findall(r"\[(\w+)\]", capsys.readouterr().out) == ["renamed", "folders"]
    assert main([str(script), "--only=dropout,hosts"]) == 1
    assert re.findall(r"\[(\w+)\]", capsys.readouterr().out) == ["dropout"]
    script.write_text("x = (", encoding="utf-8")
    assert main([str(script), "--only=hosts"]) == 1
    with pytest.raises(UserError, match=r"--skip has 'drop', expected rules among .*dropout"):
        main([str(script), "--skip=drop"])
    assert main(["--list-rules"]) == 0
    assert "dropout   2.0" in capsys.readouterr().out


def test_hook_of_the_page_checks_files(tmp_path: Path) -> None:
    """The hook is that of the manifest, which pre-commit accepts; its command is run."""
    client = pytest.importorskip("pre_commit.clientlib")
    (hook,) = client.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "config.yaml").write_text(block, encoding="utf-8")
    (repository,) = client.load_config(str(tmp_path / "config.yaml"))["repos"]
    (used,) = repository["hooks"]
    assert used["id"] == hook["id"]
    for name, text in (("a.py", SERVED), ("b.py", f"{CHANGES}open('/tmp/x')\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    python, *words = hook["entry"].split()
    assert (python, words) == ("python", ["-m", "compat", "check"])
    done = command(*used["args"], "a.py", "b.py", cwd=tmp_path)
    assert (done.returncode, re.findall(r"\[(\w+)\]", done.stdout)) == (1, ["renamed", "dropout"])
