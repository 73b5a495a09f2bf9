"""A SQLite store that is there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os

from mlflow.tracking import MlflowClient

from experiments.metrics.stores import sqlite_file


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
    new = f"{path}.new-{os.getpid()}"
    try:
        MlflowClient(tracking_uri=uri.replace(path, new)).get_experiment("0")
        try:
            os.link(new, path)  # Another training's that was faster stays.
        except FileExistsError:
            pass
        except OSError:  # There are no links on this file system.
            os.rename(new, path)
    finally:
        for left in (new, new + "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
