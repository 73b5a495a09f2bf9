"""The environment is the one its name says: a cell of the matrix cannot test another by mistake."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

if sys.version_info >= (3, 8):
    from importlib import metadata
else:  # Drop it with Python 3.7.
    import importlib_metadata as metadata

PACKAGES = ("compat", "experiments", "models")


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
    top = {file.parts[0] for file in files}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)
    assert any(file.match("compat/requirements/tf1.15.txt") for file in files)
