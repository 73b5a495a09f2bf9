"""Addresses, folders and divisions that a check finds in the text of a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.scripts.rules.rule import Finding
from compat.scripts.rules.sources import check


def found(tmp_path: Path, text: str) -> list[Finding]:
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    return check(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "pc-01:2222",
        "localhost:2222",
        "localhost:80",
        "10.0.0.1:2222",
        "ps0.example.com:2222",
        "pc-01:2222,pc-02:2222",
        " pc-01:2222, pc-02:2222,",
        "grpc://pc-01:2222",
        "[::1]:2222",
    ],
)
def test_address_is_found(text: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"hosts = {text!r}\n")
    assert (finding.kind.name, finding.name, finding.column) == ("host", text, 10)
    assert not finding.fails
    assert "--local" in finding.message


def test_address_in_the_code_is_replaced_by_an_option(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "session = open('grpc://pc-01:2222')\n")
    assert "compat run --hosts pc-01:2222=HOST:PORT" in finding.message


@pytest.mark.parametrize("text", ["/tmp", "/tmp/logs", "/home/ann/mnist", "/data/mnist/", "~/data"])
def test_folder_is_found(text: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"folder = {text!r}\n")
    assert (finding.kind.name, finding.name, finding.fails) == ("folder", text, False)
    assert "make it a flag" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "conv1:0",
        "dense/kernel:0",
        "/job:ps/task:0",
        "/gpu:0",
        "/train",
        "/data",
        "logs/train",
        "12:30",
        "step: 2222",
        "http://localhost:8080",
        "for example localhost:2222",
        "the folder, as /tmp/logs",
        "worker:3",
        "pc-01:99999",
        "",
    ],
)
def test_other_text_is_not_found(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, f"x = {text!r}\n") == []


def test_docstring_is_not_found(tmp_path: Path) -> None:
    assert found(tmp_path, '"""/tmp/logs"""\n') == []


@pytest.mark.parametrize(
    "definition",
    [
        "flags.DEFINE_string('place', VALUE, 'where')",
        "parser.add_argument('--place', type=str, default=VALUE)",
        "parser.add_argument('-p', '--place', default=join(VALUE, 'x'))",
    ],
)
@pytest.mark.parametrize("value", ["pc-01:2222", "/tmp/logs"])
def test_default_of_a_flag_is_replaced_by_the_flag(
    definition: str, value: str, tmp_path: Path
) -> None:
    (finding,) = found(tmp_path, definition.replace("VALUE", repr(value)) + "\n")
    assert "pass --place=..." in finding.message


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("x = n / 2", [7]),
        ("x = len(a) / n", [12]),
        ("x /= 2", [3]),
        ("x = a / b / 2", [7, 11]),
        ("x = a / (b / c)", [7, 12]),
        ("x = (a +\n  b) / c", [6]),
        ("x = n / 2.0", []),
        ("x = n / float(m)", []),
        ("x = (time.time() - start) / n", []),
        ("x = n // 2", []),
        ("half = 0.5\nx = n / half", []),
    ],
)
def test_division_of_python_2_changes_where_numbers_may_be_whole(
    statement: str, columns: list[int], tmp_path: Path
) -> None:
    pytest.importorskip("fissix")
    findings = found(tmp_path, f"print 'Python 2'\n{statement}\n")
    assert [finding.kind.name for finding in findings] == ["changes"] * len(columns)
    assert [finding.column for finding in findings] == columns


def test_division_of_python_3_is_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path, "print(1 / 2)\n") == []


def test_true_division_in_python_2_is_left_alone(tmp_path: Path) -> None:
    pytest.importorskip("fissix")
    assert found(tmp_path, "from __future__ import division\nprint 1 / 2\n") == []
