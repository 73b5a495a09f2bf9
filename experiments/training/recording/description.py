"""Describes a run to a person who finds it in MLflow."""

from __future__ import annotations

import os
import shlex
from typing import Any, Mapping

from experiments.settings.files import flags_of
from experiments.training.recording import origin

TAG = "mlflow.note.content"  # MLflow shows it as the run's Description.


def text(
    experiment: Any, data: Any, result: Mapping[str, float], step: int, stopped: str | None = None
) -> str:
    """Returns the description of a run in Markdown: model, data, result, and how to repeat it.

    Args:
      experiment: an instance of the experiment.
      data: the splits, an `experiments.Data`.
      result: the last values by the names of their curves; empty while the run goes on.
      step: the global step of the result.
      stopped: why the run ended early, None if it did not.
    """
    kind, logdir = type(experiment), experiment.settings.logdir
    about = (vars(kind).get("__doc__") or "").strip().partition("\n")[0]
    sizes = ", ".join(f"{count:,} of {split}" for split, count in data.sizes.items())
    parts = [data.name, f"{sizes} examples" if sizes else "", data.source]
    found = ", ".join(f"{name} {value:.4g}" for name, value in result.items())
    end = f"at step {step}" + (f", where it was stopped early: {stopped}" if stopped else "")
    lines = [
        f"**{kind.__name__}**{': ' if about else ''}{about}",
        f"**Result**: {f'{found}, {end}' if found else 'none yet'}",
        f"**Data**: {'; '.join(filter(None, parts)) or 'a stream'}",
        "**To repeat it**:",
        f"```sh\n{command(experiment)}\n```",
        "**To add the model to this run**:",
        f"```sh\npython -m experiments.export {shlex.quote(short(logdir))} --mlflow\n```",
    ]
    return "\n\n".join(lines)


def command(experiment: Any) -> str:
    """Returns a command that repeats a run in a new log folder; in a notebook, a call of `run`."""
    settings, kind = experiment.settings, type(experiment)
    flags = flags_of(settings)
    if settings.experiment_name == kind.name():
        flags.pop("experiment_name", None)
    program = origin.of(kind).program
    if not program:
        given = "".join(f", {name}={value!r}" for name, value in flags.items())
        return f"run({kind.__name__}{given or ', strategy=' + repr(settings.strategy)})"
    start = [short(program)] if os.sep in program else ["-m", program]
    words = [
        (f"--{name}" if value else f"--no{name}")
        if isinstance(value, bool)
        else f"--{name}={value}"
        for name, value in flags.items()
    ]
    return " ".join(shlex.quote(word) for word in ["python", *start, *words])


def short(path: str) -> str:
    """Returns a path relative to the working directory if it is inside of that."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
