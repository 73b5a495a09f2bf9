"""Reads and writes the files of variables that the command converts, whatever their format."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Iterator

import numpy as np

from compat._tensorflow import quietly, tf1
from compat.checkpoint import files
from compat.checkpoint.formats import by_name, keras_weights, objects, stored
from compat.checkpoint.formats.stored import Stored, Values
from compat.checkpoint.io import CheckpointIO
from compat.errors import UserError
from compat.tracking.files import beside

_READABLE = "name a folder, or a prefix without .index or .meta, of tf.train.Saver"


def read(path: str, given: str) -> Stored:
    """Returns the contents of a file of weights, or of the checkpoint at a prefix or in a folder.

    Raises a `UserError` if it is invalid; `given` is the argument that names it.
    """
    if keras_weights.is_one(path):
        return keras_weights.read(path)
    prefix = path
    if os.path.isdir(path):
        prefixes = CheckpointIO(path).history()
        if not prefixes:
            raise UserError(
                f"folder {path} has no checkpoint that its file `checkpoint` lists; give a prefix, "
                f"such as {os.path.join(path, 'model.ckpt-100')}"
            )
        prefix = prefixes[-1]
    else:
        if not files.exists(path):
            raise UserError(f"{given}={path} names no checkpoint; {_READABLE}")
    values = files.read(prefix, _READABLE)
    if not values:  # TensorFlow finds none if the prefix is the name of a file, such as *.index.
        raise UserError(f"checkpoint {prefix} holds no variables; {_READABLE}")
    return (
        objects.known(prefix, values) if objects.is_one(values) else by_name.known(prefix, values)
    )


def check_name(new: str, like: str) -> None:
    """Raises `UserError` if NEW cannot be a file in the format of --like."""
    if keras_weights.is_one(like) != keras_weights.is_one(new):
        kind = f"a file *{keras_weights.ENDING}" if keras_weights.is_one(like) else "a folder"
        raise UserError(f"NEW={new} has another format than --like={like}; name {kind}")


def write(new: str, like: Stored, values: Values) -> str:
    """Creates a file, or a folder with one checkpoint, atomically; returns its path or prefix."""
    if keras_weights.is_one(new):
        with unfinished(new) as path:
            keras_weights.write(str(path), like, values)
        return new
    name = "model.ckpt"
    step = like.counter(stored.GLOBAL_STEP) or like.counter(stored.ITERATIONS)
    if step is not None:
        name += f"-{int(np.asarray(values[step]))}"
    with unfinished(new) as path:
        path.mkdir()
        files.write(str(path / name), objects.keyed(like, values) if like.keys else values)
        with quietly():
            # A relative path, since the folder is about to be renamed.
            tf1.train.update_checkpoint_state(str(path), name)
    return os.path.join(new, name)


@contextlib.contextmanager
def unfinished(new: str) -> Iterator[Path]:
    """Yields a hidden path beside `new`, which becomes `new` when the block ends without an error.

    Raises:
      UserError: it cannot be written.
    """
    try:
        with beside(new) as path:
            yield path
    except (OSError, tf1.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.strerror}: {error.filename}"
        raise UserError(
            f"NEW={new} cannot be written ({reason}); name a folder that can be created"
        ) from None
