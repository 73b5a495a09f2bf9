"""The two sides of a proof: the program and the Python of each."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace

from compat.errors import UserError, reason_of
from compat.scripts.proving import migrated

# Prints the release of TensorFlow of a Python, without loading TensorFlow.
_RELEASE = r"""
import glob, os, re, sys
for folder in sys.path:
    for found in glob.glob(os.path.join(folder, "*tensorflow*-*-info")):
        name = os.path.basename(found)
        match = re.match(r"tensorflow(?:_cpu|_gpu)?-(\d.*)\.(?:dist|egg)-info$", name)
        if match:
            print(match.group(1)); sys.exit()
"""
_NO_PYTHON = "name a Python, a constraints file, a program, `run` or `migrated`"
# `prove` can record one update per call of the session only.
_EXPERIMENT = (
    *("--strategy=local", "--runtime=legacy", "--steps_per_loop=1", "--logdir={out}/run"),
    *("--tracking_uri=sqlite:///{out}/mlflow.db", "--system_metrics_every=0"),
)
_INSTALL_SECS = 1800
# The newest Python for each line of TensorFlow; other lines use this Python.
_PYTHONS = {"1.15": "3.7", "2.4": "3.8", "2.5": "3.9", "2.6": "3.9", "2.7": "3.9"}


@dataclass(frozen=True)
class Side:
    """A program and the Python that runs it.

    Attributes:
      name: "A" or "B".
      how: The program runs unchanged ("plain"), under `compat run` ("run"), or imports `compat.v1`.
      says: A description for people.
      options: Options of `compat run`, if it runs the program.
      arguments: Additional arguments of this side.
      takes_flags: Whether the program also receives the arguments of the script.
    """

    name: str
    python: str
    script: str
    how: str
    says: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    takes_flags: bool = True

    @property
    def gathers(self) -> bool:
        """Whether the program makes several calls of a session as one (`--ahead`)."""
        return any(word.startswith("--ahead=") for word in (*self.options, *self.arguments))


def side(name: str, given: str, script: str, folder: str) -> Side:
    """Returns the side that `--a` or `--b` describes.

    Args:
      name: "A" or "B".
      given: "run", optionally followed by options of `compat run`, "migrated", a program, a Python
        or a constraints file.
      script: The script to prove.
      folder: The folder for a migrated program.

    Raises:
      UserError: `given` describes no side.
    """
    if given.split()[:1] == ["run"]:
        options = tuple(shlex.split(given)[1:])
        says = " ".join(("compat run", *options, script))
        return Side(name, sys.executable, script, "run", f"{says}, {_here()}", options)
    if given == "migrated":
        path = migrated.write(script, os.path.join(folder, "migrated"))
        says = f"{script} migrated to compat.v1, {_here()}"
        return Side(name, sys.executable, path, "compat.v1", says)
    words = [given] if os.path.isfile(given) else shlex.split(given)
    if len(words) > 1 and os.path.isfile(words[0]):
        result = side(name, words[0], script, folder)
        arguments = (*result.arguments, *words[1:])
        return replace(result, says=f"{given}, {_here()}", arguments=arguments)
    if not os.path.isfile(given):
        raise UserError(f"--{name.lower()}={given} is no file; {_NO_PYTHON}")
    if given.endswith(".py"):
        with open(given, "rb") as file:
            text = file.read()
        is_experiment = b"from experiments import" in text
        is_program = is_experiment or b"compat.v1" in text
        how = "compat.v1" if is_program else "run"
        says = f"{'' if is_program else 'compat run '}{given}, {_here()}"
        result = Side(name, sys.executable, given, how, says)
        if is_experiment:
            result = replace(result, arguments=_EXPERIMENT, takes_flags=False)
        return result
    python = _environment(given) if given.endswith(".txt") else given
    if not os.access(python, os.X_OK):
        raise UserError(f"--{name.lower()}={given} is not a program; {_NO_PYTHON}")
    release = _release(python)
    if not release:
        raise UserError(
            f"--{name.lower()}={given} has no TensorFlow; install it there, or name another Python"
        )
    how = "plain" if re.match(r"[01]\.", release) else "run"
    says = f"{'' if how == 'plain' else 'compat run '}{script}, TensorFlow {release}"
    return Side(name, python, script, how, says)


def _here() -> str:
    return f"TensorFlow {_release(sys.executable)}"


def _release(python: str) -> str:
    """Returns the release of TensorFlow that a Python has, or ""."""
    try:
        done = subprocess.run([python, "-c", _RELEASE], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise UserError(f"{python} cannot be started ({reason_of(error)}); {_NO_PYTHON}") from None
    return done.stdout.strip()


def _environment(constraints: str) -> str:
    """Returns the Python of an environment with the TensorFlow of a constraints file.

    The environment is made in the cache folder of the user, once for each release.
    """
    with open(constraints, encoding="utf-8") as file:
        match = re.search(r"^tensorflow\s*==\s*([\w.]+)", file.read(), re.MULTILINE)
    if match is None:
        raise UserError(f"{constraints} has no line `tensorflow ==...`; name one of requirements/")
    release = match[1]
    line = ".".join(release.split(".")[:2])
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "compat-experiments", "prove", f"tensorflow-{release}")
    python = os.path.join(folder, "bin", "python")
    stamp = os.path.join(folder, "installed.json")
    if os.path.exists(stamp):
        return python
    version = _PYTHONS.get(line, "")
    base = shutil.which(f"python{version}") if version else sys.executable
    if base is None:
        raise UserError(
            f"TensorFlow {release} needs python{version}, which is not on PATH; install it, or "
            "name a Python that has this TensorFlow"
        )
    print(f"making an environment with TensorFlow {release} in {folder}", flush=True)
    install = [python, "-m", "pip", "install", "-q", "-c", constraints, "tensorflow"]
    for command in ([base, "-m", "venv", "--clear", folder], install):
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECS)
        if done.returncode:
            message = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise UserError(
                f"{' '.join(command)} failed ({message}); name a Python with --a or --b"
            )
    with open(stamp, "w", encoding="utf-8") as file:
        json.dump({"tensorflow": release}, file)
    return python
