"""The page of the matrix says what its lines have shown, and fails without one of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compat

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
DEADLINE_SECS = 60
FEATURES = ["legacy", "modern", "lifted TF1 model", "sync", "scripts", "checkpoint exchange"]
LOSSES = ["one process, legacy", "one process, modern", "cluster, legacy", "cluster, modern"]
PASSED = {"passed": 3, "failed": []}
FAILED = {"passed": 2, "failed": ["tests/test_it.py::test_it"]}
NONE, NOT_RUN = "none", "**not run**"


def report(folder: Path, labels: str, **results: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    """Returns the code, what was said of a matrix, and the cells of each row of both tables."""
    settings = f"[tox]\nlabels =\n    matrix = \\\n        {labels}, \\\n        matrix-report\n"
    settings += "[testenv]\nignore_outcome =\n    tf2.22: true\n"
    (folder / "tox.ini").write_text(settings, encoding="utf-8")
    shutil.rmtree(str(folder / "matrix"), ignore_errors=True)
    (folder / "matrix").mkdir()
    for name, found in results.items():
        file = folder / "matrix" / f"{name.replace('_tf', '-tf').replace('_', '.')}.json"
        file.write_text(json.dumps(found), encoding="utf-8")
    words = [str(HERE / "matrix.py"), "tox.ini", "matrix", "page.md"]
    ran = subprocess.run(
        [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, timeout=DEADLINE_SECS
    )
    rows: dict[str, Any] = {}
    for line in (folder / "page.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            cells = line.strip("| ").split(" | ")
            rows.setdefault(cells[0], []).extend(cells[1:])
    return ran.returncode, ran.stdout.decode(), rows


def shown(version: str, differs: float = 1e-7, **features: Any) -> dict[str, Any]:
    """Returns the result of a line on which all passed; arguments say what is different."""
    return {
        "tensorflow": version,
        "python": "3.11",
        "runtimes": ["legacy", "modern"],
        "failed": [name for found in features.values() for name in found["failed"]],
        "features": {**dict.fromkeys(FEATURES, PASSED), **features},
        "differences": dict.fromkeys(LOSSES, differs),
    }


def test_each_cell_is_a_result(tmp_path: Path) -> None:
    code, said, rows = report(
        tmp_path,
        "py311-tf2.{10, 9}",
        py311_tf2_10=shown("2.10.1", 4e-6, sync={"passed": 6, "failed": []}),
        py311_tf2_9=shown("2.9.3", 0.3),
        py311_tf2_7=shown("2.7.4"),  # No line any more.
    )
    assert (code, said) == (0, "page.md: 2 lines\n")
    assert list(rows) == ["TensorFlow", "---", "2.9.3", "2.10.1"]
    assert rows["2.9.3"] == ["3.11", *["3"] * 6, "3.11", *["**3.0e-01**"] * 4]
    assert rows["2.10.1"] == ["3.11", "3", "3", "3", "6", "3", "3", "3.11", *["< 5e-06"] * 4]


def test_none_stands_where_tensorflow_lacks_a_runtime(tmp_path: Path) -> None:
    old = shown("1.15.5")
    del old["features"]["modern"], old["differences"][LOSSES[1]], old["differences"][LOSSES[3]]
    code, said, rows = report(tmp_path, "py37-tf1.15", py37_tf1_15={**old, "runtimes": ["legacy"]})
    assert (code, said) == (0, "page.md: 1 lines\n")
    assert rows["1.15.5"][1:7] == ["3", NONE, "3", "3", "3", "3"]
    assert rows["1.15.5"][8:] == ["< 3e-06", NONE, "< 3e-06", NONE]
    code, said, rows = report(tmp_path, "py37-tf1.15", py37_tf1_15=old)  # With both runtimes.
    assert (code, rows["1.15.5"][2], rows["1.15.5"][9]) == (1, NOT_RUN, NOT_RUN)
    assert said.endswith("not run: 1.15 (modern; one process, modern; cluster, modern)\n")


@pytest.mark.parametrize("labels", ["py37-tf2.{7, 8, 9}", "py38-tf2.{7, 9}, \\\n py39-tf2.8"])
def test_a_line_without_a_result_is_missing(labels: str, tmp_path: Path) -> None:
    code, said, rows = report(tmp_path, labels, **{labels[:4] + "_tf2_7": shown("2.7.4")})
    assert code == 1
    assert said == "page.md: 3 lines; not run: 2.8, 2.9\n"
    assert rows["2.8"][1:7] == [NOT_RUN] * 6
    assert rows["2.9"][8:] == [NOT_RUN] * 4


def test_a_feature_of_which_nothing_passed_was_not_run(tmp_path: Path) -> None:
    found = shown("2.9.3", sync={"passed": 0, "failed": []})
    code, said, rows = report(tmp_path, "py38-tf2.9", py38_tf2_9=found)
    assert (code, said) == (1, "page.md: 1 lines; not run: 2.9 (sync)\n")
    assert rows["2.9.3"][4] == NOT_RUN


def test_a_failed_line_fails_unless_it_is_to_come(tmp_path: Path) -> None:
    coming = {"py313_tf2_22": shown("2.22.0rc1", legacy=FAILED)}
    code, said, rows = report(tmp_path, "py313-tf2.22", **coming)
    assert (code, rows["2.22.0rc1"][1]) == (0, "**1 failed**")
    assert said == "page.md: 1 lines; failed: 2.22\n"
    assert report(tmp_path, "py313-tf2.22")[0] == 0  # Not even run.
    old = {**shown("2.4.4"), "failed": ["tests/test_of_no_feature.py::test_it"]}
    code, said, _ = report(tmp_path, "py313-tf2.{4, 22}", py313_tf2_4=old, **coming)
    assert (code, said) == (1, "page.md: 2 lines; failed: 2.4, 2.22\n")


TESTS = """
import pytest

@pytest.mark.feature("sync")
def test_sync(record_property):
    record_property("difference", ("cluster, legacy", 1e-7))

@pytest.mark.feature
def test_on(runtime):
    pass

def test_of_no_feature():
    assert {holds}
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Runs tests as tox does, over the result of an earlier run; returns what is there then."""
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "matrix_results.py", "starting.py"):
        shutil.copy(str(HERE / name), str(tmp_path / "tests" / name))
    results = tmp_path / "matrix" / "py38-tf2.4.json"

    def run(tests: str, *words: str) -> Any:
        (tmp_path / "tests" / "test_it.py").write_text(tests, encoding="utf-8")
        results.parent.mkdir(exist_ok=True)
        results.write_text('"of an earlier run"', encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-c", str(HERE.parent / "setup.cfg")]
        command += ["--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
        packages = str(Path(compat.__file__).parents[1])
        command += words or ["-n", "1", f"--matrix-results={results}"]
        subprocess.run(
            [*command, "tests"],
            cwd=tmp_path,
            env=dict(os.environ, PYTHONPATH=packages, PYTEST_ADDOPTS=""),
            stdout=subprocess.DEVNULL,
            timeout=200,  # Two processes load MLflow, one after the other.
        )
        return json.loads(results.read_text("utf-8")) if results.exists() else None

    return run


@pytest.mark.long
@pytest.mark.parametrize("holds", [True, False])
def test_a_run_of_all_tests_leaves_what_they_have_shown(
    run: Any, holds: bool, runtimes: list[str]
) -> None:
    found = run(TESTS.format(holds=holds))
    assert found["runtimes"] == runtimes
    assert found["failed"] == ([] if holds else ["tests/test_it.py::test_of_no_feature"])
    passed = {name: counts["passed"] for name, counts in found["features"].items()}
    assert passed == dict.fromkeys([*runtimes, "sync"], 1)
    assert found["differences"] == {"cluster, legacy": 1e-7}


@pytest.mark.long
def test_a_file_that_cannot_be_read_is_a_failure(run: Any) -> None:
    assert run("import of_nothing")["failed"] == ["tests/test_it.py"]


@pytest.mark.long
@pytest.mark.parametrize("tests", ["raise KeyboardInterrupt", "import os; os._exit(3)"])
def test_tests_that_do_not_begin_leave_no_earlier_result(run: Any, tests: str) -> None:
    assert run(tests, "-p", "no:xdist", "--matrix-results=matrix/py38-tf2.4.json") is None


@pytest.mark.long
def test_a_run_of_other_tests_leaves_the_result_alone(run: Any) -> None:
    assert run(TESTS.format(holds=True), "-k", "sync") == "of an earlier run"
