"""The page of `python -m compat lock`, and what it refuses."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from compat import UserError
from compat.doctor import constraints, lock

pytestmark = pytest.mark.once
PAGE = Path(__file__).resolve().parents[2] / "docs" / "lock.md"


def block(language: str, number: int = 0) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of the page, in the working directory."""
    (tmp_path / "train.py").write_text(block("python"))
    (tmp_path / "digits.py").write_text(block("python", 1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_script_is_locked_as_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert lock.main(block("sh").split()[4:]) == 0
    number = re.compile(r"[0-9]+ packages")
    assert number.sub("N", capsys.readouterr().out) == number.sub("N", block("text"))
    python = "python:{}.{}-slim".format(*sys.version_info)
    expected = block("Dockerfile").replace("python:3.11-slim", python)
    assert Path("train.lock/Containerfile").read_text() == expected
    pins = Path("train.lock/constraints.txt").read_text().splitlines()
    assert f"tensorflow=={constraints.version('tensorflow')}" in pins
    names = {pin.partition("==")[0] for pin in pins}
    # What they need, and what that needs; and what `compat run` needs, of its extra.
    assert {"scikit-learn", "scipy", "threadpoolctl", "protobuf", "mlflow", "fissix"} <= names
    assert "pytest" not in names


def test_a_migrated_script_runs_with_plain_python(program: Path) -> None:
    (program / "new.py").write_text("import compat.v1 as tf\n")
    assert lock.main(["new.py", "--no_audit", "--output=fixed"]) == 0
    container = Path("fixed/Containerfile").read_text()
    assert 'ENTRYPOINT ["python", "new.py"]' in container
    assert "'compat-experiments'" in container


def test_vulnerabilities_are_asked_for_or_it_is_said_why_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert lock.main(["train.py"]) == 0
    *_, said = capsys.readouterr().out.partition("Containerfile\n")
    assert said.startswith("vulnerabilities")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import os\nimport nowhere.to_be\n",
            "train.py:2 imports nowhere, which is not installed here, nor beside the script; "
            "install it, or remove the import, and lock again",
        ),
        ("def f(:\n", "train.py:1 is not Python "),
        (None, "script train.py cannot be read "),
    ],
)
def test_what_cannot_be_locked_writes_nothing(text: str | None, message: str) -> None:
    Path("train.py").unlink() if text is None else Path("train.py").write_text(text)
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        lock.main(["train.py"])
    assert not Path("train.lock").exists()


def test_names_of_files_are_quoted(program: Path) -> None:
    (program / "my train.py").write_text("import digits\n")
    assert lock.main(["my train.py", "--no_audit"]) == 0
    lines = (program / "my train.lock" / "Containerfile").read_text().splitlines()
    assert 'COPY ["my train.lock", "my train.lock"]' in lines
    assert 'COPY ["my train.py", "my train.py"]' in lines
    assert "COPY digits.py digits.py" in lines
    (run,) = [line for line in lines if line.startswith("RUN")]
    assert "--constraint 'my train.lock'/constraints.txt" in run
    assert lines[-1] == 'ENTRYPOINT ["python", "-m", "compat", "run", "my train.py"]'
    assert "#   docker build -f 'my train.lock'/Containerfile -t my-train ." in lines


@pytest.mark.parametrize("name", ["a\nRUN echo.py", "a$HOME.py", "a*.py", 'a".py', "a\\.py"])
def test_a_name_that_would_say_more_is_refused(program: Path, name: str) -> None:
    (program / name).write_text("import digits\n")
    with pytest.raises(UserError, match="rename it"):
        lock.main([name, "--no_audit"])
    assert not list(program.glob("*.lock"))
    (program / "digits").mkdir()
    (program / "digits" / name).write_text("")
    with pytest.raises(UserError, match="rename it"):
        lock.main(["train.py", "--no_audit"])
    assert not list(program.glob("*.lock"))


def test_an_optional_import_may_be_missing() -> None:
    text = "try:\n    import nowhere\nexcept ImportError:\n    import queue\n"
    Path("train.py").write_text(text)
    assert lock.main(["train.py", "--no_audit"]) == 0
