"""Reads the constraints of each TensorFlow line and the versions of installed packages.

A line is a minor release, such as "2.21"; its constraints are `requirements/tf2.21.txt`, which the
wheel includes. No package is imported.
"""

from __future__ import annotations

import contextlib
import functools
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
    else:  # Remove this branch with Python 3.7.
        import importlib_metadata as metadata
except ModuleNotFoundError as missing:
    raise UserError(
        f"doctor reads versions with {missing.name}, which is not installed; "
        f"fix with: {sys.executable} -m pip install packaging importlib-metadata"
    ) from None

_FOLDER = (Path(__file__).parent / "requirements").resolve()
# Errors for a package that is missing or has broken metadata. Python raises the last one if a
# module has imported the newest importlib_metadata, which replaces Python's own.
_UNREADABLE = (metadata.PackageNotFoundError, KeyError, ValueError, OSError)
# Distributions of TensorFlow with other names.
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")
# The first and the last Python that has wheels of a line.
PYTHONS = ((3, 7), (3, 13))
# The last line that has wheels for a Python, unless that is the newest of all.
_LAST = {(3, 7): "2.11", (3, 8): "2.13", (3, 9): "2.20"}


def version(name: str) -> str | None:
    """Returns the installed version of a package, None if it is not installed."""
    for alias in _TENSORFLOW if name == "tensorflow" else (name,):
        with contextlib.suppress(*_UNREADABLE):
            return metadata.version(alias)
    return None


def needs(name: str, extras: Iterable[str] = ()) -> dict[str, Requirement]:
    """Returns the requirements of an installed package, as a dict keyed by the required package.

    The dict is empty if the package is not installed.
    """
    requirements: dict[str, Requirement] = {}
    with contextlib.suppress(*_UNREADABLE):
        for text in metadata.requires(name) or []:
            # The requirements of old packages may be malformed.
            with contextlib.suppress(ValueError):
                requirements.update(_by_name([text], extras))
    return requirements


def closure(wanted: Iterable[str]) -> set[str]:
    """Returns the installed packages that requirements, such as "keras[extra]", need in all."""
    packages: set[str] = set()
    seen: set[str] = set()
    todo = list(wanted)
    while todo:
        text = todo.pop()
        if text in seen:
            continue
        seen.add(text)
        need = Requirement(text)
        # A package that is not installed is for another Python, or for an extra.
        if version(need.name) is not None:
            packages.add(str(canonicalize_name(need.name)))
            todo += map(str, needs(need.name, need.extras).values())
    return packages


@functools.lru_cache(maxsize=None)
def owners() -> dict[str, str]:
    """Returns the installed package of each name that can be imported."""
    distributions: dict[str, str] = {}
    for package in metadata.distributions():
        names = (package.read_text("top_level.txt") or "").split()
        if not names:
            names = [file.parts[0] for file in package.files or () if file.suffix == ".py"]
        distributions.update({top.partition(".py")[0]: package.metadata["Name"] for top in names})
    if version("tensorflow") is not None:  # The distribution may have another name.
        distributions["tensorflow"] = "tensorflow"
    return distributions


def lines() -> list[str]:
    """Returns the TensorFlow lines that have constraints, such as "2.21", oldest first."""
    stems = [path.stem[len("tf") :] for path in _FOLDER.glob("tf*.txt")]
    known = [stem for stem in stems if re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", stem)]
    if not known:
        raise UserError(
            f"{_FOLDER} holds no constraints, expected tf2.21.txt and others; "
            "install compat-experiments anew"
        )
    return sorted(known, key=order)


def line_of(tensorflow: str) -> str:
    """Returns the line of a release: "2.21" of "2.21.0"."""
    return ".".join(tensorflow.split(".")[:2])


def line_for(python: tuple[int, int]) -> str:
    """Returns the newest line that supports a Python, such as (3, 11)."""
    known = lines()
    last = order(_LAST.get(python, known[-1]))
    return [line for line in known if order(line) <= last and not _is_prerelease(line)][-1]


def order(line: str) -> list[int]:
    """Returns a sort key of lines by age; empty if the text is not a version."""
    return [int(number) for number in re.findall("[0-9]{1,9}", line)]


def file(line: str) -> Path:
    """Returns the constraints file of a line, a minor release of TensorFlow such as "2.21"."""
    return _FOLDER / f"tf{line}.txt"


def pins(line: str) -> dict[str, Requirement]:
    """Returns the constraints of a line for this Python, by package."""
    path = file(line)
    try:
        texts = [text.partition("#")[0].strip() for text in path.read_text("utf-8").splitlines()]
        return _by_name(filter(None, texts))
    except (OSError, ValueError) as error:  # Most errors of packaging are ValueErrors.
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"{path} is not a constraints file ({reason}), expected tensorflow==2.21.0 etc.; "
            "install compat-experiments anew"
        ) from None


def meets(installed: str | None, wanted: Requirement) -> bool:
    """Returns whether an installed version satisfies a requirement; pre-releases count."""
    try:
        return installed is not None and bool(
            wanted.specifier.contains(installed, prereleases=True)
        )
    except InvalidVersion:
        return False


def _by_name(texts: Iterable[str], extras: Iterable[str] = ()) -> dict[str, Requirement]:
    """Returns the requirements that apply to this Python and the extras, by package."""
    return {
        str(canonicalize_name(requirement.name)): requirement
        for requirement in map(Requirement, texts)
        if requirement.marker is None
        or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    }


def _is_prerelease(line: str) -> bool:
    pin = pins(line).get("tensorflow")
    return pin is not None and bool(pin.specifier.prereleases)
