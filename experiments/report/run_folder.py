"""Reads the records of a run from its log folder, without changing it and without TensorFlow."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Tuple

from compat.errors import UserError, unless_usable
from compat.tracking import FAILED, FINISHED, KILLED, redacted
from compat.tracking.mlflow import spool
from compat.tracking.tensorboard.eventfile import event_files, read_events
from experiments.evaluation import best_checkpoint, selection
from experiments.launching import task_record
from experiments.report.tasks import Life, lives_of
from experiments.settings.files import FILE as SETTINGS
from experiments.settings.files import read_pairs
from experiments.training.recording import description
from experiments.training.recording.curve_tags import name_of

Curve = List[Tuple[int, float]]  # Step and value, steps increasing.
_EVALUATOR = "eval"  # The folder of an evaluator's curves.
_LEFT_OUT = "logdir"  # This setting is the name of the run in the report already.
_CODES = {FINISHED: 0, FAILED: 1, KILLED: 143}  # Exit codes.
_INDEX = re.compile(r"model\.ckpt-(\d{1,18})\.index")
_GREATEST = 1e300
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_SHOWN = 8  # The most runs that a message names.


@dataclass(frozen=True)
class Images:
    """The images that were recorded last under a name."""

    step: int
    width: int  # Pixels.
    pngs: list[bytes]


@dataclass
class RunFolder:
    """The records of a run."""

    name: str  # The log folder, as it was given.
    settings: dict[str, str] = field(default_factory=dict)  # The settings, without secrets.
    facts: dict[str, str] = field(default_factory=dict)  # The tags, such as "git_commit".
    status: str = "no end recorded"  # Or FINISHED, FAILED or KILLED.
    # The curves by name, as "train/loss"; those of an evaluator as "evaluator/loss".
    curves: dict[str, Curve] = field(default_factory=dict)
    images: dict[str, Images] = field(default_factory=dict)
    # The values of the checkpoints that were evaluated, by step.
    evaluations: dict[int, Mapping[str, float]] = field(default_factory=dict)
    events: list[task_record.Event] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)  # The times in which tasks were up.
    last: int | None = None  # The step of the newest checkpoint.
    best: int | None = None  # The step of the best checkpoint.


def read(logdir: str) -> RunFolder:
    """Returns the records in a log folder.

    Raises:
      UserError: there is no run in the folder, or it cannot be read.
    """
    with unless_usable(f"log folder {logdir} cannot be read", "give one that can"):
        _check(logdir)
        run = RunFolder(logdir)
        spans = [_read_events(run, path, "") for path in event_files(logdir)]
        for path in event_files(os.path.join(logdir, _EVALUATOR)):
            _read_events(run, path, "evaluator")
        _read_settings(run)
    run.evaluations = {found.step: found.values for found in selection.read(logdir)}
    code = _CODES.get(run.status)
    run.events = list(task_record.read(logdir))
    run.lives = lives_of(run.events, [span for span in spans if span], code)
    run.last = _newest(logdir)
    run.best = _newest(os.path.join(logdir, best_checkpoint.FOLDER))
    return run


def _check(logdir: str) -> None:
    if not os.path.isdir(logdir):
        raise UserError(
            f"log folder {logdir} is not a folder; give the --logdir of a run, as in runs/1"
        )
    if _has_run(logdir):
        return
    below = sorted(path for path in Path(logdir).iterdir() if path.is_dir())
    runs = [str(path) for path in below if _has_run(str(path))]
    others = f", or {len(runs) - _MOST_SHOWN} others" if len(runs) > _MOST_SHOWN else ""
    hint = f", such as {', '.join(runs[:_MOST_SHOWN])}{others}" if runs else ", as in runs/1"
    raise UserError(f"log folder {logdir} holds no run; give the --logdir of one{hint}")


def _has_run(logdir: str) -> bool:
    files = (SETTINGS, spool.SPOOL)
    return bool(event_files(logdir)) or any(os.path.isfile(f"{logdir}/{name}") for name in files)


def _newest(folder: str) -> int | None:
    found = (_INDEX.fullmatch(path.name) for path in Path(folder).glob("model.ckpt-*.index"))
    return max((int(match.group(1)) for match in found if match), default=None)


def _read_settings(run: RunFolder) -> None:
    path = os.path.join(run.name, SETTINGS)
    if os.path.isfile(path):
        run.settings = {str(name): _shown(value) for name, value in read_pairs(path)}
    if not os.path.isfile(os.path.join(run.name, spool.SPOOL)):
        return
    for record, _ in spool.read(run.name):
        run.status = RunFolder.status  # A run that resumes has not ended.
        if record["kind"] == "params":  # They also have what "auto" stood for.
            values = {**run.settings, **record["values"]}
            run.settings = {name: _shown(value) for name, value in redacted(values).items()}
        elif record["kind"] == "tags":
            tags = {str(k): _shown(v) for k, v in record["values"].items() if k != description.TAG}
            run.facts.update(tags)
        elif record["kind"] == "end":
            run.status = record["status"]
    run.settings.pop(_LEFT_OUT, None)


def _shown(value: Any) -> str:
    """Returns a value as text, as it is written in a flag."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def _read_events(run: RunFolder, path: str, split: str) -> tuple[float, float] | None:
    """Adds the curves and images in an event file; returns the times of its first and last event.

    If `split` is given, the curves get that split, and images are left out.
    """
    first = last = None
    for _, event in read_events(path):
        first = event.wall_time if first is None else first
        last = event.wall_time
        for value in event.summary.value:
            for tag, number in _scalars(value):
                tag = name_of(tag)
                name = f"{split}/{tag.partition('/')[2] or tag}" if split else tag
                curve = run.curves.setdefault(name, [])
                while curve and curve[-1][0] >= event.step:  # A resumed run repeats some steps.
                    curve.pop()
                curve.append((event.step, number))
            images = _images(value, event.step)
            if images is not None and not split:
                run.images[value.tag] = images
    return None if first is None or last is None else (first, last)


def _scalars(value: Any) -> Iterator[tuple[str, float]]:
    """Yields the name and value of a summary of TensorFlow 1 or 2, if it is a scalar."""
    if value.WhichOneof("value") == "simple_value":
        yield value.tag, float(value.simple_value)
    elif value.metadata.plugin_data.plugin_name == "scalars":
        from tensorboard.util.tensor_util import make_ndarray

        with contextlib.suppress(TypeError, ValueError):  # Another program may write any tensor.
            yield value.tag, float(make_ndarray(value.tensor).item())


def _images(value: Any, step: int) -> Images | None:
    """Returns the PNG images of a summary, None if it has none."""
    kind = value.WhichOneof("value")
    if kind == "image":
        width, pngs = value.image.width, [value.image.encoded_image_string]
    elif kind == "tensor" and value.metadata.plugin_data.plugin_name == "images":
        size, pngs = b"".join(value.tensor.string_val[:1]), value.tensor.string_val[2:]
        width = int(size) if re.fullmatch(b"[0-9]{1,6}", size) else 0
    else:
        return None
    pngs = [png for png in pngs if png.startswith(_PNG)]
    return Images(step, width, pngs) if pngs else None


def is_number(value: float) -> bool:
    """Whether a value is finite, and so small that the difference of two such values is, too."""
    return abs(value) < _GREATEST
