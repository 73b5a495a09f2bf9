"""Checks that packages load: imports each in its own process, all in parallel."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Iterator

from compat.doctor import constraints
from compat.doctor.finding import Finding
from compat.doctor.packages import NEEDED, Packages
from compat.doctor.timed_process import Attempt

# tensorboard.main: the module that the command loads, which imports more than the package.
_WORDS = {
    "tensorflow": ("-m", "compat.doctor.facts"),
    "tensorboard": ("-c", "import tensorboard.main"),
    "mlflow": ("-c", "import mlflow"),
}


def findings(
    packages: Packages, folder: Path, deadline: int, facts: dict[str, Any]
) -> Iterator[Finding]:
    """Yields a finding for each package.

    Args:
      packages: the installed packages.
      folder: folder for temporary files.
      deadline: limit for each import, in seconds.
      facts: filled with the output of `compat.doctor.facts`, if TensorFlow loads.
    """
    with contextlib.ExitStack() as stack:
        attempts = {
            name: stack.enter_context(Attempt(_WORDS[name], folder / name, deadline))
            for name in NEEDED
            if constraints.version(name) is not None
        }
        for name in NEEDED:
            if name not in attempts:
                yield Finding(name, "not installed")
                continue
            attempt = attempts[name]
            failure = attempt.wait()
            if failure:
                yield Finding(name, f"fails: {failure}", packages.remedy(failure, deadline))
                continue
            if name == "tensorflow":
                facts.update(json.loads(attempt.result))
            yield Finding(name, "loads")
