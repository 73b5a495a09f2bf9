"""Runs `python -m compat convert-checkpoint` in the process, and writes checkpoints for it."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from compat import __main__ as command_line
from compat import tf1
from compat.checkpoint import files


def convert(*argv: str) -> list[Any]:
    """Runs the command; returns its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command_line.main(["convert-checkpoint", *argv])
    return [code, out.getvalue().splitlines(), err.getvalue().splitlines()]


def written(folder: str, **values: Any) -> None:
    """Makes a log folder with a checkpoint of these values."""
    Path(folder).mkdir()
    arrays = {name: np.asarray(value) for name, value in values.items()}
    files.write(os.path.abspath(f"{folder}/model.ckpt-1"), arrays)
    tf1.train.update_checkpoint_state(os.path.abspath(folder), "model.ckpt-1")
