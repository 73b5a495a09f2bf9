"""Compares installed packages with the constraints of their TensorFlow line."""

from __future__ import annotations

import importlib.util
import platform
import re
import shlex
import sys
from typing import Any, Iterator, NamedTuple

from compat.doctor import constraints

# Packages that a training run loads; their requirements are checked as well.
NEEDED = ("tensorflow", "tensorboard", "mlflow")
_SHOWN = (*NEEDED, "protobuf", "numpy")
_PROJECT = "compat-experiments"
# As in setup.cfg: tensorboard sets no bound, and releases before 2.21 import modules that
# setuptools 82 removed.
_SETUPTOOLS = "setuptools<82"
LATE = "no end after"  # The failure of a process that missed its deadline begins with these words.
LONGEST_SECS = 24 * 60 * 60
_PATIENCE = 5  # The next deadline is longer by this factor.


class Finding(NamedTuple):
    """A line of the report; `remedy` is the command that fixes it, "" if nothing is wrong."""

    name: str
    text: str
    remedy: str = ""


class Packages:
    """The packages of this environment; `python` is the version to check for."""

    def __init__(self, python: tuple[int, int] = sys.version_info[:2]) -> None:
        self._wrong: dict[str, str] = {}  # Descriptions of deviations, by package.
        self._python = python
        self._line = self._find_line()
        self._pins = {} if self._line is None else constraints.pins(self._line)
        for name, pin in self._pins.items():
            self._compare(name, pin, "constrained to")
        for name in NEEDED:
            if constraints.version(name) is None:
                self._wrong[name] = "not installed"
        for owner in (*NEEDED, _PROJECT):
            if owner in self._wrong:  # Its requirements are replaced together with it.
                continue
            for name, need in constraints.needs(owner).items():
                if constraints.version(name) is None:
                    self._wrong.setdefault(name, f"not installed, {owner} needs it")
                self._compare(name, need, f"{owner} needs")

    def _find_line(self) -> str | None:
        """Returns the line of the installed TensorFlow; None if it is newer than all known lines.

        If TensorFlow is not installed, or an older release of no known line, returns the newest
        line that supports this Python.
        """
        tensorflow = constraints.version("tensorflow")
        known = constraints.lines()
        if tensorflow is not None:
            line = constraints.line_of(tensorflow)
            if line in known:
                return line
            if constraints.order(line) > constraints.order(known[-1]):
                return None
            self._wrong["tensorflow"] = (
                f"found {tensorflow}, expected {known[0]}, or {known[1]} to {known[-1]}"
            )
        return constraints.line_for(self._python)

    def _compare(self, name: str, wanted: Any, reason: str) -> None:
        installed = constraints.version(name)
        if installed is not None and not constraints.meets(installed, wanted):
            self._wrong.setdefault(name, f"found {installed}, {reason} {wanted.specifier}")

    def findings(self) -> Iterator[Finding]:
        """Yields findings for Python, the constraints and each package; problems come last."""
        python = f"{platform.python_version()}, {sys.executable}"
        if self._has_wheels():
            yield Finding("Python", python)
        else:
            first, last = ("{}.{}".format(*version) for version in constraints.PYTHONS)
            python += f"; TensorFlow has wheels for {first} to {last}"
            yield Finding("Python", python, self._install())
        if self._line is None:
            newest = constraints.lines()[-1]
            yield Finding("constraints", f"none for a line newer than {newest}")
        else:
            met = "not met" if self._wrong else "met"
            path = constraints.file(self._line)
            yield Finding("constraints", f"of TensorFlow {self._line}, {met}: {path}")
        for name in dict.fromkeys([*_SHOWN, *self._pins]):
            installed = constraints.version(name)
            if installed is not None and name not in self._wrong:
                pin = self._pins.get(name)
                yield Finding(name, f"{installed:<9} meets {pin.specifier}" if pin else installed)
        for name, text in self._wrong.items():
            yield Finding(name, text, self._install())

    def _has_wheels(self) -> bool:
        """Returns whether this Python has a TensorFlow: an installed one, or wheels to install."""
        first, last = constraints.PYTHONS
        return first <= self._python <= last or constraints.version("tensorflow") is not None

    def _install(self, *options: str) -> str:
        """Returns the command that installs the expected packages, if this Python has wheels."""
        if not self._has_wheels():
            return "python{}.{} -m venv .venv".format(*constraints.PYTHONS[-1])
        words = [*options, *NEEDED]
        if self._line is not None:
            words = ["-c", str(constraints.file(self._line)), *words]
        project = constraints.needs(_PROJECT)
        for name in self._wrong:
            if name == "setuptools":
                words.append(_SETUPTOOLS)
            elif name not in NEEDED:
                bounded = name in project and name not in self._pins
                words.append(name + str(project[name].specifier) if bounded else name)
        return _pip(*words)

    def remedy(self, failure: str, deadline: int) -> str:
        """Returns the command to try after a process has failed, usually an installation.

        If the process missed its deadline, the command runs `doctor` again with a longer one, since
        a slow machine may be the cause.

        Args:
          failure: the failure, as text.
          deadline: the deadline of the process, in seconds.
        """
        is_late = re.match(rf"(\w+: )?{LATE} [0-9]+ s", failure)  # A slow machine may be the cause.
        if is_late and deadline < LONGEST_SECS:
            more = min(deadline * _PATIENCE, LONGEST_SECS)
            return _python("-m", "compat", "doctor", f"--deadline={more}")
        if self._wrong:
            return self._install()
        if "pkg_resources" in failure:
            return _pip(_SETUPTOOLS)
        return self._install("--force-reinstall")


def _pip(*words: str) -> str:
    install = _python("-m", "pip", "install", *words)
    if importlib.util.find_spec("pip") is None:  # Some tools create environments without pip.
        return _python("-m", "ensurepip") + " && " + install
    return install


def _python(*words: str) -> str:
    return " ".join(map(shlex.quote, [sys.executable, *words]))
