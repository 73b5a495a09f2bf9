"""Keeps a copy of the best checkpoint of a run; even while it is replaced, one copy is complete."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Iterator

from compat.checkpoint.io import CheckpointIO
from compat.errors import UserError
from compat.tracking.files import replacing, write_atomically

FOLDER = "best"
# The optional .tmp is of a file that a killed process had begun.
_OF_A_CHECKPOINT = re.compile(r"\.(index|data-\d{5}-of-\d{5})(\.tmp)?$")
CHECKPOINTS = ("best", "last")


def find(logdir: str, which: str | None = None, given: str = "LOGDIR") -> tuple[str, str]:
    """Returns whether the chosen checkpoint of a run is the "best" or the "last", and its prefix.

    Args:
      logdir: the log folder of the run.
      which: "best" or "last"; None for the best, or the last if there is no best.
      given: the argument or flag by which the user gave the folder, for errors.

    Raises:
      UserError: there is no such checkpoint.
    """
    if not os.path.isdir(logdir):
        raise UserError(f"{given}={logdir} is not a folder; name the log folder of a run")
    for name in CHECKPOINTS if which is None else [which]:
        best = name == "best"
        found = CheckpointIO(os.path.join(logdir, FOLDER) if best else logdir).history()
        if found:
            return name, found[-1]
    if which == "best":
        raise UserError(
            f"{logdir} has no best checkpoint, which is kept where checkpoints are evaluated; "
            "give --checkpoint=last"
        )
    raise UserError(f"{logdir} has no checkpoint; name the log folder of a run that has saved one")


def step_of(prefix: str) -> int:
    """Returns the global step of a checkpoint, which is the number at the end of its prefix."""
    return int(prefix.rpartition("-")[2])


@contextlib.contextmanager
def held(prefix: str, logdir: str) -> Iterator[str]:
    """Yields the prefix of a temporary copy of a checkpoint; the chief may remove the original."""
    folder = Path(logdir) / "being_evaluated"
    try:
        shutil.rmtree(str(folder), ignore_errors=True)  # A killed process may have left it.
        folder.mkdir()
        for file in _files(prefix):
            link = str(folder / file.name)
            try:
                os.link(str(file), link)
            except OSError:  # The file system has no hard links.
                shutil.copyfile(str(file), link)
        yield str(folder / Path(prefix).name)
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)


def keep(prefix: str, folder: str) -> str:
    """Copies a checkpoint to a folder, in place of the one there; returns the copy's prefix."""
    name, files = Path(prefix).name, _files(prefix)
    os.makedirs(folder, exist_ok=True)
    for file in files:
        target = os.path.join(folder, file.name)
        with replacing(target) as new, file.open("rb") as given:
            shutil.copyfileobj(given, new, 1 << 20)
    # The format of TensorFlow, but with the name in place of the path, so the folder may be moved.
    state = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    write_atomically(os.path.join(folder, "checkpoint"), state)
    kept = {file.name for file in files}
    for old in Path(folder).iterdir():
        if _OF_A_CHECKPOINT.search(old.name) and old.name not in kept:
            with contextlib.suppress(OSError):
                old.unlink()
    return os.path.join(folder, name)


def _files(prefix: str) -> list[Path]:
    """Returns the files of a checkpoint, the index last, as TensorFlow writes them."""
    parts = Path(prefix).parent.glob(f"{Path(prefix).name}.data-*")
    files = sorted({*parts, Path(f"{prefix}.index")})
    if len(files) < 2:
        raise FileNotFoundError(2, "its files have gone", prefix)
    return files
