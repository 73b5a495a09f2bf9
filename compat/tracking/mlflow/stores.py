"""Determines the store of MLflow's runs: the tracking URI, by default that of one SQLite file."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil

from compat.errors import UserError
from compat.tracking.mlflow import run_id, spool
from compat.tracking.redaction import redacted_text

URI_VARIABLE = "MLFLOW_TRACKING_URI"
_EXPERIMENT_VARIABLE = "MLFLOW_EXPERIMENT_NAME"
_ARTIFACTS = "mlflow-artifacts"
_LOCAL_SERVER = "http://127.0.0.1:5000"  # The default address of `mlflow ui`.
_DATABASE = re.compile(r"(sqlite|mysql|postgresql|mssql)(\+\w+)?://.")
_SERVER = re.compile(r"https?://.|databricks")
_SQLITE = re.compile(r"(sqlite(?:\+\w+)?):///([^?]+)(.*)")

_unfinished: list[str] = []  # Folders in which this process creates databases.


def store_uri(tracking_uri: str | None, logdir: str) -> str:
    """Returns the URI of the store, with an absolute path if it is a file.

    Args:
      tracking_uri: A server (http, https, databricks) or a database (sqlite, mysql, postgresql,
        mssql, each with or without a driver as in mysql+pymysql). None stands for
        `MLFLOW_TRACKING_URI` or, if that is not set, for the store in which the run of the log
        folder started. A new run then uses `mlflow.db` in the working directory, which plain
        `mlflow ui` shows there, or in the log folder if the working directory is read-only.
      logdir: The log folder.

    Raises:
      UserError: The URI is another one: MLflow 3 does not support plain folders of files any more.
    """
    folder = os.getcwd() if os.access(os.curdir, os.W_OK) else os.path.abspath(logdir)
    default = "sqlite:///" + os.path.join(folder, "mlflow.db")
    name = "tracking URI"
    if tracking_uri is None:
        name = URI_VARIABLE
        tracking_uri = os.environ.get(URI_VARIABLE) or spool.store(logdir) or default
    sqlite = _SQLITE.match(tracking_uri)
    if sqlite and sqlite.group(2) != ":memory:":
        return f"{sqlite.group(1)}:///{os.path.abspath(sqlite.group(2))}{sqlite.group(3)}"
    in_memory = tracking_uri.startswith("sqlite")
    if in_memory or not (_DATABASE.match(tracking_uri) or _SERVER.match(tracking_uri)):
        # A secret may contain any kind of space; a URI in a text ends at one.
        shown = redacted_text(re.sub(r"\s", "%20", tracking_uri))
        raise UserError(
            f"{name} {shown!r} is not a store that MLflow can write;"
            " expected http(s)://, databricks, or a database (sqlite, mysql, postgresql, mssql);"
            f" for files on this machine give {default}"
        )
    return tracking_uri


def experiment(name: str | None, default: str) -> str:
    """Returns the name of the MLflow experiment: `name`, `MLFLOW_EXPERIMENT_NAME` or a default."""
    return name or os.environ.get(_EXPERIMENT_VARIABLE) or default


def artifact_root(uri: str) -> str | None:
    """Returns the folder for a SQLite store's artifacts, which holds nothing else, or None."""
    path = _sqlite_file(uri)
    return None if path is None else os.path.join(os.path.dirname(path), _ARTIFACTS)


def is_given(tracking_uri: str | None) -> bool:
    """Returns whether the user has named a store, by the argument or `MLFLOW_TRACKING_URI`."""
    return bool(tracking_uri or os.environ.get(URI_VARIABLE))


def tracking_command(logdir: str, tracking_uri: str | None) -> str:
    """Returns the command that shows all runs, or the address of the server.

    Args:
      logdir: The log folder.
      tracking_uri: As for `store_uri`, which raises an error if it is not valid.
    """
    uri = store_uri(tracking_uri, logdir)
    if _SERVER.match(uri):
        return redacted_text(uri)
    is_here = _sqlite_file(uri) == os.path.abspath("mlflow.db")
    shown = "sqlite:///mlflow.db" if is_here else redacted_text(uri)
    return f"mlflow ui --backend-store-uri {shlex.quote(shown)}"


def run_page(logdir: str, tracking_uri: str | None) -> str | None:
    """Returns the address of the run's page, on the server or at `mlflow ui`'s default address.

    None if the store has not created the run yet. The arguments are those of `tracking_command`.
    """
    uri, page = store_uri(tracking_uri, logdir), run_id.page(logdir)
    server = redacted_text(uri).rstrip("/") if _SERVER.match(uri) else _LOCAL_SERVER
    return server + page if page else None


def make_database(uri: str) -> None:
    """Creates the database of a SQLite store atomically; does nothing for other stores.

    MLflow creates a database in dozens of steps. If it is interrupted, it can neither use nor
    complete the file. So the database is created in a folder beside its final path.
    """
    path = _sqlite_file(uri)
    if path is None or os.path.exists(path):
        return
    # Importing takes a second, in which no unfinished file exists.
    from mlflow.tracking import MlflowClient

    folder = f"{path}.new-{os.getpid()}"
    new = os.path.join(folder, os.path.basename(path))
    os.makedirs(folder, exist_ok=True)
    _unfinished.append(folder)
    try:
        MlflowClient(tracking_uri=uri.replace(path, new)).get_experiment("0")
        try:
            os.link(new, path)  # If another run was faster, its database is kept.
        except FileExistsError:
            pass
        except OSError:  # The file system has no links.
            os.rename(new, path)
    finally:
        discard_databases()


def discard_databases() -> None:
    """Removes unfinished databases of `make_database`; may be called on another thread at exit."""
    while _unfinished:
        folder = _unfinished.pop()
        gone = f"{folder}-gone"
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


def _sqlite_file(uri: str) -> str | None:
    sqlite = _SQLITE.match(uri)
    return sqlite.group(2) if sqlite else None
