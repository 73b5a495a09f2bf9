"""Where data sets are looked for, and where they are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Mapping

from compat.errors import UserError

DATA_DIR_VARIABLE = "MNIST_DATA_DIR"


def data_folder(
    name: str, data_dir: str | os.PathLike[str] | None, environ: Mapping[str, str]
) -> Path:
    """Returns the folder of a data set, which need not exist: the named one, or that in the cache.

    Args:
      name: of the data set, for the cache folder.
      data_dir: as given by the user; None or "" if not given.
      environ: the process's environment.

    Raises:
      UserError: the folder that was named is a file.
    """
    named = os.fspath(data_dir or environ.get(DATA_DIR_VARIABLE) or "")
    if not named:
        cache = environ.get("XDG_CACHE_HOME") or ""
        # The XDG specification: a relative path in this variable is to be ignored.
        base = Path(cache) if os.path.isabs(cache) else _home(environ) / ".cache"
        return base / "compat-experiments" / name
    folder = Path(os.path.expanduser(named))
    if os.path.isfile(folder):
        raise UserError(
            f"data_dir {folder} is a file, expected the folder that holds the data set; "
            "name a folder with --data_dir"
        )
    return folder


def keras_folder(environ: Mapping[str, str]) -> Path:
    """Returns the folder in which Keras keeps the data sets that it has downloaded."""
    keras_home = environ.get("KERAS_HOME")
    return (Path(keras_home) if keras_home else _home(environ) / ".keras") / "datasets"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))
