"""Compares installed packages with the constraints of their TensorFlow line."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import sys
from typing import TYPE_CHECKING, Iterator

from compat.doctor import constraints
from compat.doctor.finding import Finding
from compat.doctor.timed_process import LONGEST_SECS, is_late

if TYPE_CHECKING:
    from packaging.requirements import Requirement

# Packages that a run loads; their requirements are checked as well.
NEEDED = ("tensorflow", "tensorboard", "mlflow")
_SHOWN = (*NEEDED, "protobuf", "numpy")
_PROJECT = "compat-experiments"
# As in setup.cfg: tensorboard has no bound, and before 2.21 imports modules that 82 removed.
_SETUPTOOLS = "setuptools<82"
# Factor of the next deadline.
_PATIENCE = 5


class Packages:
    """The packages of this environment.

    Attributes:
      line: the TensorFlow line to compare with, the installed one if it is supported; None if it
        is newer than all lines with constraints.
      wrong: descriptions of deviations, by package.
    """

    def __init__(self, python: tuple[int, int] = sys.version_info[:2]) -> None:
        """Reads what is installed; `python` is the version to check for."""
        self.wrong: dict[str, str] = {}
        self._python = python
        self.line = self._find_line()
        self._pins = {} if self.line is None else constraints.pins(self.line)
        for name, pin in self._pins.items():
            self._compare(name, pin, "constrained to")
        for name in NEEDED:
            if constraints.version(name) is None:
                self.wrong[name] = "not installed"
        for owner in (*NEEDED, _PROJECT):
            if owner not in self.wrong:  # Otherwise it will be replaced, with its requirements.
                self._compare_needs(owner)

    def _find_line(self) -> str | None:
        tensorflow = constraints.version("tensorflow")
        known = constraints.lines()
        if tensorflow is not None:
            own = constraints.line_of(tensorflow)
            if own in known:
                return own
            if constraints.order(own) > constraints.order(known[-1]):
                return None
            self.wrong["tensorflow"] = (
                f"found {tensorflow}, expected {known[0]}, or {known[1]} to {known[-1]}"
            )
        return constraints.line_for(self._python)

    def _compare(self, name: str, wanted: Requirement, reason: str) -> None:
        found = constraints.version(name)
        if found is not None and not constraints.meets(found, wanted):
            self.wrong.setdefault(name, f"found {found}, {reason} {wanted.specifier}")

    def _compare_needs(self, owner: str) -> None:
        for name, need in constraints.needs(owner).items():
            if constraints.version(name) is None:
                self.wrong.setdefault(name, f"not installed, {owner} needs it")
            self._compare(name, need, f"{owner} needs")

    def findings(self) -> Iterator[Finding]:
        """Yields findings for Python, the constraints and each package; problems come last."""
        python = f"{platform.python_version()}, {sys.executable}"
        if self._has_wheels():
            yield Finding("Python", python)
        else:
            first, last = ("{}.{}".format(*version) for version in constraints.PYTHONS)
            python += f"; TensorFlow has wheels for {first} to {last}"
            yield Finding("Python", python, self.install())
        if self.line is None:
            newest = constraints.lines()[-1]
            yield Finding("constraints", f"none for a line newer than {newest}")
        else:
            met = "not met" if self.wrong else "met"
            path = constraints.file(self.line)
            yield Finding("constraints", f"of TensorFlow {self.line}, {met}: {path}")
        for name in dict.fromkeys([*_SHOWN, *self._pins]):
            found = constraints.version(name)
            if found is not None and name not in self.wrong:
                pin = self._pins.get(name)
                yield Finding(name, f"{found:<9} meets {pin.specifier}" if pin else found)
        for name, text in self.wrong.items():
            yield Finding(name, text, self.install())

    def _has_wheels(self) -> bool:
        """Whether this Python supports a TensorFlow: one that is installed, or one with wheels."""
        first, last = constraints.PYTHONS
        return first <= self._python <= last or constraints.version("tensorflow") is not None

    def install(self, *options: str) -> str:
        """Returns the command that installs the expected packages, if this Python has wheels."""
        if not self._has_wheels():
            return "python{}.{} -m venv .venv".format(*constraints.PYTHONS[-1])
        words = [*options, *NEEDED]
        if self.line is not None:
            words = ["-c", str(constraints.file(self.line)), *words]
        project = constraints.needs(_PROJECT)
        for name in self.wrong:
            if name == "setuptools":
                words.append(_SETUPTOOLS)
            elif name in project and name not in self._pins and name not in NEEDED:
                words.append(name + str(project[name].specifier))
            elif name not in NEEDED:
                words.append(name)
        return _pip(*words)

    def remedy(self, failure: str, deadline: int) -> str:
        """Returns the command that fixes a failure of installed packages.

        Args:
          failure: `failure` of a process.
          deadline: its deadline, in seconds.
        """
        if is_late(failure) and deadline < LONGEST_SECS:
            more = min(deadline * _PATIENCE, LONGEST_SECS)
            return _python("-m", "compat", "doctor", f"--deadline={more}")
        if self.wrong:
            return self.install()
        if "pkg_resources" in failure:
            return _pip(_SETUPTOOLS)
        return self.install("--force-reinstall")


def _pip(*words: str) -> str:
    install = _python("-m", "pip", "install", *words)
    if importlib.util.find_spec("pip") is None:  # Some tools create environments without pip.
        return _python("-m", "ensurepip") + " && " + install
    return install


def _python(*words: str) -> str:
    return " ".join(map(shlex.quote, [sys.executable, *words]))
