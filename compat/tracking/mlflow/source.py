"""The origin of a run as tags: its program, user, commit, releases and cluster."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import subprocess
import sys
from typing import Mapping, Sized

from compat._tensorflow import version
from compat.tracking.redaction import redacted_text


def environment(jobs: Mapping[str, Sized]) -> dict[str, str]:
    """Returns the releases of TensorFlow and Python, and the number of tasks of each job."""
    shape = ", ".join(f"{len(hosts)} {job}" for job, hosts in sorted(jobs.items()))
    return {
        "cluster": shape or "one process",
        "tensorflow": version(),
        "python": platform.python_version(),
    }


def source() -> dict[str, str]:
    """Returns the tags by which MLflow's own `start_run` describes the origin of a run."""
    program = os.path.abspath(getattr(sys.modules["__main__"], "__file__", None) or sys.argv[0])
    tags = {"mlflow.source.name": redacted_text(program), "mlflow.source.type": "LOCAL"}
    # A user without a name, as in some containers, or a missing git is no error.
    with contextlib.suppress(KeyError, ImportError, OSError):
        tags["mlflow.user"] = getpass.getuser()
    commit = git_commit(os.path.dirname(program))
    return {**tags, "mlflow.source.git.commit": commit} if commit else tags


def git_commit(folder: str) -> str:
    """Returns the commit of the code in a folder; "" if its history is unknown."""
    command = ["git", "rev-parse", "HEAD"]  # `PATH` determines which git runs.
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode().strip() if done.returncode == 0 else ""
