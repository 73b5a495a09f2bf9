"""Runs a program of the package with wrong flags, case after case in one process.

A process of its own for each would take half a second of a core.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

from absl.testing import flagsaver

import experiments
from experiments.launching import command_line
from experiments.training import main as training

Case = Sequence[Any]  # Flags, and variables of the environment.


def refusals(module: str, cases: Sequence[Case], folder: Path) -> list[str]:
    """Returns the one line of each refusal; the folder, in which all run, stays as it was."""
    before = sorted(os.listdir(str(folder)))
    env = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "MLFLOW_TRACKING_URI")}
    env["PYTHONPATH"] = str(Path(experiments.__file__).resolve().parents[1])
    command = [sys.executable, str(Path(__file__).resolve()), module, json.dumps(cases)]
    done = subprocess.run(
        command, cwd=str(folder), env=env, stdout=subprocess.PIPE, timeout=150, check=True
    )
    lines = []
    for (flags, _), (code, out, err) in zip(cases, json.loads(done.stdout.decode())):
        assert (code, out) == (2, ""), (flags, out, err)
        assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1, err
        lines.append(err[len("error: ") : -1])
    assert len(lines) == len(cases)
    assert sorted(os.listdir(str(folder))) == before
    return lines


def main(module: str, cases: Sequence[Case]) -> list[tuple[Any, str, str]]:
    """Returns the exit code of each case, and what it has written to the two streams."""
    program: Any = importlib.import_module(module)
    begin = getattr(program, "main", None)
    if begin is None:  # An experiment.
        training.define_flags(program.MNIST.Settings, program.MNIST.presets)
        begin = lambda values: training.main(program.MNIST, values)  # noqa: E731
    found = []
    for flags, variables in cases:
        sys.argv = [module, *flags]
        out, err, code = io.StringIO(), io.StringIO(), None
        os.environ.update(variables)
        shown = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with shown[0], shown[1], flagsaver.flagsaver():
            try:
                command_line.run(begin)
            except SystemExit as end:
                code = end.code
        for name in variables:
            del os.environ[name]
        found.append((code, out.getvalue(), err.getvalue()))
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
