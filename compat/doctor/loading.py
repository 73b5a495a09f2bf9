"""Whether the packages load: each is imported in a process of its own, all at once."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Iterator

from compat.doctor import constraints
from compat.doctor.attempt import Attempt
from compat.doctor.finding import Finding
from compat.doctor.packages import NEEDED, Packages

# tensorboard.main: what the command loads, and more than the package itself does.
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
      packages: what is installed.
      folder: for temporary files.
      deadline: seconds that each may take.
      facts: is given what `compat.doctor.facts` prints, if TensorFlow loads.
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
                yield Finding(name, f"fails: {failure}", packages.mend(failure, deadline))
                continue
            if name == "tensorflow":
                facts.update(json.loads(attempt.result))
            yield Finding(name, "loads")
