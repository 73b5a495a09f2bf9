"""A SQLite store that is there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil

from compat.tracking.mlflow.stores import sqlite_file

_unfinished: list[str] = []


def make(uri: str) -> None:
    """Makes the database of a SQLite store, if it is not there; does nothing for other stores.

    MLflow makes it in dozens of steps. What is left after some of them, when the disk is full or
    the process is killed, it can neither use nor complete, ever. So it is made beside its place.

    Args:
      uri: The store, as `stores.store_uri` gives it.

    Raises:
      Exception: Whatever MLflow raises when it cannot be made.
    """
    path = sqlite_file(uri)
    if path is None or os.path.exists(path):
        return
    from mlflow.tracking import MlflowClient  # Takes a second, which `discard` has not.

    folder = f"{path}.new-{os.getpid()}"
    new = os.path.join(folder, os.path.basename(path))
    os.makedirs(folder, exist_ok=True)
    _unfinished.append(folder)
    try:
        MlflowClient(tracking_uri=uri.replace(path, new)).get_experiment("0")
        try:
            os.link(new, path)  # Another training's that was faster stays.
        except FileExistsError:
            pass
        except OSError:  # There are no links on this file system.
            os.rename(new, path)
    finally:
        discard()


def discard() -> None:
    """Removes what is not whole, also from another thread when the process has to end at once.

    What is at work there may open its file anew at any moment, and then finds no place for it.
    """
    while _unfinished:
        folder = _unfinished.pop()
        gone = f"{folder}-gone"
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)
