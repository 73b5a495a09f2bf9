"""The environment is the one its name says: a cell of the matrix cannot test another by mistake."""

from __future__ import annotations

import configparser
import importlib
import os
import re
import runpy
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from compat.doctor import constraints

if sys.version_info >= (3, 8):
    from importlib import metadata
else:  # Drop it with Python 3.7.
    import importlib_metadata as metadata

PACKAGES = ("compat", "experiments", "models")
ROOT = Path(__file__).parents[1]
LINES = runpy.run_path(str(ROOT / "tests" / "matrix.py"))["lines"](ROOT / "tox.ini")
WITH_FIXES = Version("3.11")  # Of all that was published of MLflow's server.


def pairs() -> list[tuple[str, str]]:
    """Returns the Python and the line of each environment of the matrix, and of `make`."""
    return [("3.9", "2.20"), *((line.python, line.tensorflow) for line in LINES)]


def on(python: str, texts: list[str]) -> dict[str, Requirement]:
    """Returns those of the requirements that are for a Python, by name."""
    texts = [text.partition("#")[0].strip() for text in texts]
    wanted = [Requirement(text) for text in texts if text]
    place = {"python_version": python, "extra": ""}
    return {r.name: r for r in wanted if r.marker is None or r.marker.evaluate(place)}


def asked_for(python: str) -> dict[str, Requirement]:
    """Returns what the package asks for on a Python."""
    settings = configparser.ConfigParser()
    settings.read(str(ROOT / "setup.cfg"), encoding="utf-8")
    return on(python, settings["options"]["install_requires"].splitlines())


def pinned(python: str, line: str) -> dict[str, Requirement]:
    """Returns the constraints of a line on a Python."""
    path = ROOT / "requirements" / f"tf{line}.txt"
    return on(python, path.read_text(encoding="utf-8").splitlines())


def version_of(requirement: Requirement) -> Version:
    """Returns the only version in a requirement, whatever stands before it."""
    (specifier,) = requirement.specifier
    return Version(specifier.version)


@pytest.mark.once
def test_the_matrix_is_read() -> None:
    assert {("3.7", "1.15"), ("3.8", "2.4"), ("3.13", "2.22")} < set(pairs())
    assert len(pairs()) == 21


@pytest.mark.once
@pytest.mark.parametrize(("python", "line"), pairs())
def test_constraints_are_within_what_the_package_asks_for(python: str, line: str) -> None:
    """A pin that an environment cannot have is found when it is made, if it ever is."""
    asked = asked_for(python)
    for name, pin in pinned(python, line).items():
        for specifier in pin.specifier:
            if name in asked and specifier.operator == "==" and "*" not in specifier.version:
                assert asked[name].specifier.contains(specifier.version, prereleases=True), pin


@pytest.fixture
def tox() -> configparser.ConfigParser:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(str(ROOT / "tox.ini"), encoding="utf-8")
    return settings


@pytest.mark.once
def test_tox_runs_style_types_and_the_newest_line(tox: configparser.ConfigParser) -> None:
    newest = [line for line in LINES if not line.may_fail][-1]
    assert tox["tox"]["env_list"].split(", ") == ["lint", "typing", newest.environment]


@pytest.mark.once
def test_the_matrix_starts_anew_and_ends_with_its_report(tox: configparser.ConfigParser) -> None:
    label, _, names = tox["tox"]["labels"].strip().partition(" = ")
    assert label == "matrix"
    assert re.findall(r"[\w-]+", names)[0] == tox["testenv"]["depends"] == "matrix-start"
    assert names.endswith("matrix-report")
    assert tox["testenv:matrix-start"]["depends"] == ""
    assert tox["testenv:matrix-report"]["depends"] == "py*"


@pytest.mark.once
def test_doctor_and_metadata_know_the_pythons_of_the_lines() -> None:
    tested = {tuple(map(int, line.python.split("."))) for line in LINES}
    assert (min(tested), max(tested)) == constraints.PYTHONS
    settings = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    told = re.findall(r"^    Programming Language :: Python :: 3\.(\d+)$", settings, re.MULTILINE)
    assert {(3, int(minor)) for minor in told} == tested


@pytest.mark.once
def test_only_the_line_to_come_may_fail(tox: configparser.ConfigParser) -> None:
    assert [name for name in tox if "ignore_outcome" in tox[name]] == ["testenv"]
    assert tox["testenv"]["ignore_outcome"].strip() == "tf2.22: true"
    assert [line.tensorflow for line in LINES if line.may_fail] == ["2.22"]


@pytest.mark.once
def test_all_lines_share_one_wheel(tox: configparser.ConfigParser) -> None:
    assert (tox["testenv"]["package"], tox["testenv"]["wheel_build_env"]) == ("wheel", ".pkg")
    assert [name for name in tox if "wheel_build_env" in tox[name]] == ["testenv"]
    assert not [name for name in tox if name.startswith("testenv:py")]


@pytest.mark.once
@pytest.mark.parametrize(
    "file", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda f: f.stem
)
def test_each_pin_has_its_reason(file: Path) -> None:
    """In a comment directly above it, which may be about two of them if it says so."""
    text = file.read_text(encoding="utf-8")
    groups = re.findall(r"((?:^#.*\n)+)((?:^[^#\n].*\n)+)", text, re.MULTILINE)
    for comment, pins in groups:
        assert pins.count("\n") == (2 if comment.startswith("# Both") else 1), pins
    with_reason = "".join(pins for _, pins in groups).splitlines()
    assert with_reason == [line for line in text.splitlines() if line and line[0] != "#"]


@pytest.mark.once
@pytest.mark.parametrize("python", sorted({python for python, _ in pairs()}))
def test_no_mlflow_is_kept_that_no_line_needs(python: str) -> None:
    """What lacks fixes is in the table of docs/security.md, with the line that needs it."""
    needed = {
        line: version_of(pinned(python, line)["mlflow"]) for p, line in pairs() if p == python
    }
    least = min(needed.values())
    assert version_of(asked_for(python)["mlflow"]) == least
    if least < WITH_FIXES:
        page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
        lines = ", ".join(line for line, version in needed.items() if version == least)
        assert f"\n| {python} | {least} | {lines} | " in page


def test_environment_is_what_its_name_says() -> None:
    """Tox gives the name, such as "py38-tf2.4"."""
    version = importlib.import_module("tensorflow").__version__
    line = ".".join(version.split(".")[:2])
    name = "py{}{}-tf{}".format(*sys.version_info[:2], line)
    told = os.environ.get("TOX_ENV_NAME", name)
    assert told == name or not told.startswith("py")
    assert line not in ("2.0", "2.1", "2.2", "2.3")
    assert sys.version_info >= (3, 7)


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_the_expected_copy(package: str) -> None:
    """Set by tox, where the wheel is under test and not the folder of the project."""
    path = importlib.import_module(package).__file__
    assert path is not None
    assert path.startswith(os.environ.get("EXPECT_PACKAGES_IN", ""))
    assert os.path.exists(os.path.join(os.path.dirname(path), "py.typed"))


@pytest.mark.skipif("EXPECT_PACKAGES_IN" not in os.environ, reason="installed as a link to here")
def test_wheel_holds_the_packages_and_nothing_else() -> None:
    files = metadata.files("compat-experiments")
    assert files is not None
    commands = {file.name for file in files if file.parts[:-1] == ("..", "..", "..", "bin")}
    assert commands == {"compat", "experiments"}
    top = {file.parts[0] for file in files if file.name not in commands}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)
    assert any(file.match("compat/doctor/requirements/tf1.15.txt") for file in files)
