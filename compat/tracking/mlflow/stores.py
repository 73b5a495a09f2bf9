"""Where MLflow keeps the runs: which tracking URIs it can serve, and how to look at them."""

from __future__ import annotations

import os
import re
import shlex

from compat.errors import UserError
from compat.tracking.redaction import redacted_text

ARTIFACTS = "mlflow-artifacts"
_DATABASE = re.compile(r"(sqlite|mysql|postgresql|mssql)(\+\w+)?://.")
_SERVER = re.compile(r"https?://.|databricks")
_SQLITE = re.compile(r"(sqlite(?:\+\w+)?):///([^?]+)(.*)")


def store_uri(tracking_uri: str | None, logdir: str) -> str:
    """Returns the URI of the store, with an absolute path where it is a file.

    Args:
      tracking_uri: A server (http, https, databricks) or a database (sqlite, mysql, postgresql,
        mssql, each with or without a driver as in mysql+pymysql); None for a SQLite database in
        the log folder.
      logdir: The log folder.

    Raises:
      UserError: For any other URI: MLflow 3 writes no plain folders of files any more.
    """
    default = "sqlite:///" + os.path.join(os.path.abspath(logdir), "mlflow.db")
    if tracking_uri is None:
        return default
    sqlite = _SQLITE.match(tracking_uri)
    if sqlite and sqlite.group(2) != ":memory:":
        return f"{sqlite.group(1)}:///{os.path.abspath(sqlite.group(2))}{sqlite.group(3)}"
    kept_nowhere = tracking_uri.startswith("sqlite")
    if kept_nowhere or not (_DATABASE.match(tracking_uri) or _SERVER.match(tracking_uri)):
        # A secret may have any kind of space in it, which would end the URI in a text.
        shown = redacted_text(re.sub(r"\s", "%20", tracking_uri))
        raise UserError(
            f"tracking URI {shown!r} is no store that MLflow can write;"
            " expected http(s)://, databricks, or a database (sqlite, mysql, postgresql, mssql);"
            f" for files on this machine give {default}"
        )
    return tracking_uri


def artifact_root(uri: str) -> str | None:
    """Returns the folder for the artifacts of a SQLite store, beside it; None for other stores.

    A folder of its own, as MLflow's clean-up deletes whole folders.
    """
    path = sqlite_file(uri)
    return None if path is None else os.path.join(os.path.dirname(path), ARTIFACTS)


def sqlite_file(uri: str) -> str | None:
    """Returns the file of a SQLite store; None for other stores."""
    sqlite = _SQLITE.match(uri)
    return sqlite.group(2) if sqlite else None


def tracking_command(logdir: str, tracking_uri: str | None) -> str:
    """Returns what shows the run: a command, or the address of the server.

    Args:
      logdir: The log folder.
      tracking_uri: As for `store_uri`.

    Raises:
      UserError: As `store_uri` does.
    """
    uri = store_uri(tracking_uri, logdir)
    if _SERVER.match(uri):
        return redacted_text(uri)
    return "mlflow ui --host 127.0.0.1 --backend-store-uri " + shlex.quote(redacted_text(uri))
