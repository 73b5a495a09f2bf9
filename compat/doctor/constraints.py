"""The constraints of each TensorFlow line, and what is installed.

A line is a minor release, such as "2.21"; its constraints are `requirements/tf2.21.txt`, which the
package has with it. All is read from files: nothing that is looked at is imported.
"""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path
from typing import Iterable

from compat.errors import UserError

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion

    if sys.version_info >= (3, 8):
        from importlib import metadata
    else:  # Drop it with Python 3.7.
        import importlib_metadata as metadata
except ModuleNotFoundError as missing:
    raise UserError(
        f"doctor reads versions with {missing.name}, which is not installed; "
        f"mend with: {sys.executable} -m pip install packaging importlib-metadata"
    ) from None

_FOLDER = (Path(__file__).parents[1] / "requirements").resolve()
# What is raised of a package that is not there, or whose own description is broken; the last where
# something has imported the newest importlib_metadata, which takes the place of Python's.
_UNREADABLE = (metadata.PackageNotFoundError, KeyError, ValueError, OSError)
# Packages that are TensorFlow by another name.
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")
# The first and the last Python that a line has wheels of.
PYTHONS = ((3, 7), (3, 13))
# The last line that a Python has wheels of, where it is not the newest of all.
_LAST = {(3, 7): "2.11", (3, 8): "2.13", (3, 9): "2.20"}


def version(name: str) -> str | None:
    """Returns the installed version of a package, None where it is not installed."""
    for alias in _TENSORFLOW if name == "tensorflow" else (name,):
        with contextlib.suppress(*_UNREADABLE):
            return metadata.version(alias)
    return None


def needs(name: str) -> dict[str, Requirement]:
    """Returns what an installed package asks of others, by name; nothing of one that is not."""
    with contextlib.suppress(*_UNREADABLE):
        return _by_name(text for text in metadata.requires(name) or [] if _is_valid(text))
    return {}


def lines() -> list[str]:
    """Returns the lines that have constraints, the oldest first."""
    found = [
        path.stem[len("tf") :]
        for path in _FOLDER.glob("tf*.txt")
        if re.fullmatch(r"tf[0-9]{1,9}\.[0-9]{1,9}", path.stem)
    ]
    if not found:
        raise UserError(
            f"{_FOLDER} holds no constraints, expected tf2.21.txt and others; "
            "install compat-experiments anew"
        )
    return sorted(found, key=order)


def line_of(tensorflow: str) -> str:
    """Returns the line of a release: "2.21" of "2.21.0"."""
    return ".".join(tensorflow.split(".")[:2])


def line_for(python: tuple[int, int]) -> str:
    """Returns the newest line that a Python, such as (3, 11), can have."""
    last = _LAST.get(python)
    return [
        line
        for line in lines()
        if (last is None or order(line) <= order(last)) and not _is_prerelease(line)
    ][-1]


def order(line: str) -> list[int]:
    """Returns what sorts lines by age; for what is no version, nothing."""
    return [int(number) for number in re.findall("[0-9]{1,9}", line)]


def file(line: str) -> Path:
    """Returns the file with the constraints of a line."""
    return _FOLDER / f"tf{line}.txt"


def pins(line: str) -> dict[str, Requirement]:
    """Returns the constraints of a line by the name of the package, those for this Python.

    Raises:
      UserError: the file holds something else.
    """
    path = file(line)
    try:
        texts = [text.partition("#")[0].strip() for text in path.read_text("utf-8").splitlines()]
        return _by_name(filter(None, texts))
    except (OSError, ValueError) as error:  # Most of what packaging raises is the latter.
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"{path} holds no constraints ({reason}), expected lines as in tensorflow==2.21.0; "
            "install compat-experiments anew"
        ) from None


def meets(found: str | None, wanted: Requirement) -> bool:
    """Whether an installed version is what is wanted; a pre-release counts as any other."""
    try:
        return found is not None and bool(wanted.specifier.contains(found, prereleases=True))
    except InvalidVersion:
        return False


def _is_valid(text: str) -> bool:
    """Whether a need can be read; what old packages say of themselves may not."""
    try:
        _by_name([text])
    except ValueError:
        return False
    return True


def _by_name(texts: Iterable[str]) -> dict[str, Requirement]:
    """Returns those of the requirements that are for this Python, and for no extra."""
    wanted = [
        requirement
        for requirement in map(Requirement, texts)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]
    return {str(canonicalize_name(requirement.name)): requirement for requirement in wanted}


def _is_prerelease(line: str) -> bool:
    pin = pins(line).get("tensorflow")
    return pin is not None and bool(pin.specifier.prereleases)
