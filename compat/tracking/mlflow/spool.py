"""The spool: a file with the records for MLflow, so that no server can delay a run.

`tracking.jsonl` has a record per line, in the order of time, over all restarts:

    {"kind": "start", "id": "6f", "experiment": "mnist", "run": null, "time": 1700000000000,
     "tags": {"mlflow.user": "me"}, "store": "sqlite:////home/me/mlflow.db"}
    {"kind": "params", "values": {"batch_size": 100}}
    {"kind": "tags", "values": {"tensorflow": "2.21.0"}}
    {"kind": "dataset", "name": "digits", "checksum": "0a1b", "source": "scikit-learn",
     "sizes": {"train": 1200}}
    {"kind": "metrics", "step": 100, "time": 1700000001000, "values": {"train/cost": 2.3}}
    {"kind": "artifact", "path": "/logs/model.ckpt-100.index", "folder": "checkpoint"}
    {"kind": "end", "status": "FINISHED", "time": 1700000002000}

The spool of an evaluator starts with the log folder of the run that receives its metrics:

    {"kind": "join", "training": "/logs"}

`store` is present if the user has named no store. Times are in milliseconds since 1970.
`tracking.offset` has the number of delivered bytes.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from typing import Any, Dict, Iterator

from compat.errors import UserError
from compat.tracking import files

SPOOL = "tracking.jsonl"
OFFSET = "tracking.offset"
SENDING = "tracking.lock"  # The process that sends holds this lock.
# Seconds to wait for the lock. A killed process holds it for a moment after its pipes are closed,
# and `abandoned` takes it for a moment to test whether it is free.
_PATIENCE = 2.0

Record = Dict[str, Any]
_FIELDS: dict[str, dict[str, type]] = {
    "start": {"id": str, "experiment": str, "time": int},
    "join": {"training": str},
    "params": {"values": dict},
    "tags": {"values": dict},
    "dataset": {"name": str, "checksum": str, "source": str, "sizes": dict},
    "metrics": {"step": int, "time": int, "values": dict},
    "artifact": {"path": str, "folder": str},
    "end": {"status": str, "time": int},
}


def now_ms() -> int:
    """Returns the time in milliseconds since 1970."""
    return int(time.time() * 1000)


class Spool:
    """The writing end of the spool; raises `UserError` if another process has it open."""

    def __init__(self, logdir: str) -> None:
        path = os.path.join(logdir, SPOOL)
        self._file = files.lock(
            path,
            f"log folder {logdir!r} is being tracked by another training; expected one training"
            " a folder; end the other one or give another folder",
            patience=_PATIENCE,
        )
        with open(path, "rb") as earlier:
            size = earlier.seek(0, os.SEEK_END)
            earlier.seek(max(0, size - 1))
            if earlier.read(1) not in (b"", b"\n"):
                # A killed process may leave half a line, which `read` skips.
                self._file.write(b"\n")

    def append(self, kind: str, **fields: Any) -> None:
        """Writes one record through to the operating system."""
        self._file.write((json.dumps(dict(fields, kind=kind)) + "\n").encode())

    def close(self) -> None:
        """Closes the file, which unlocks the log folder."""
        self._file.close()


def read(logdir: str, offset: int = 0) -> Iterator[tuple[Record, int]]:
    """Yields each whole record from byte `offset` on, with the offset after it."""
    with open(os.path.join(logdir, SPOOL), "rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            try:
                record = json.loads(line.decode())
            except (ValueError, RecursionError):
                continue
            if _is_record(record):
                yield record, offset


def _is_record(record: Any) -> bool:
    """Returns whether a value has the fields of its kind, which all readers rely on."""
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        return False
    fields = _FIELDS.get(record["kind"])
    if fields is None or not all(isinstance(record.get(name), fields[name]) for name in fields):
        return False
    numbers = [value for value in record.values() if isinstance(value, int)]
    points = record["values"].values() if record["kind"] == "metrics" else ()
    return (
        isinstance(record.get("tags", {}), dict)
        and isinstance(record.get("store", ""), str)
        and all(isinstance(point, (int, float)) for point in points)
        and all(abs(number) < 1 << 63 for number in numbers)
    )


def delivered(logdir: str) -> int:
    """Returns how many bytes of the spool were delivered; 0 if that is unknown."""
    try:
        with open(os.path.join(logdir, OFFSET), errors="replace") as file:
            text = file.read()
        written = os.path.getsize(os.path.join(logdir, SPOOL))
    except FileNotFoundError:
        return 0
    offset = int(text) if re.fullmatch("[0-9]{1,18}", text) else 0
    return offset if offset <= written else 0


def set_delivered(logdir: str, offset: int) -> None:
    """Stores that the spool was delivered up to byte `offset`."""
    files.write_atomically(os.path.join(logdir, OFFSET), str(offset))


def pending(logdir: str) -> int:
    """Returns the number of records that have not been delivered."""
    return sum(1 for _ in read(logdir, delivered(logdir)))


def curves(logdir: str, end: int | None = None) -> Iterator[str]:
    """Yields the names of metrics recorded before byte `end`, in order; names may be repeated."""
    for record, behind in read(logdir):
        if end is not None and behind > end:
            return
        if record["kind"] == "metrics":
            yield from record["values"]


def superseded(logdir: str) -> str | None:
    """Returns the latest tag `superseded`, a list of the steps that were logged again, or None."""
    tags = [record["values"] for record, _ in read(logdir) if record["kind"] == "tags"]
    return next(
        (str(values["superseded"]) for values in tags[::-1] if "superseded" in values), None
    )


def last_step(logdir: str) -> int:
    """Returns the highest step of a metric; -1 if there is none."""
    records = (record for record, _ in read(logdir))
    return max((r["step"] for r in records if r["kind"] == "metrics"), default=-1)


def first_step(logdir: str) -> int | None:
    """Returns the step of the first recorded metric, or None."""
    try:
        records = (record for record, _ in read(logdir))
        return next((r["step"] for r in records if r["kind"] == "metrics"), None)
    except FileNotFoundError:
        return None


def joined(logdir: str) -> str | None:
    """Returns the log folder of the other run to which this folder's records are added.

    Returns None if the records are those of a run of its own.
    """
    first = next((record for record, _ in read(logdir)), None)
    return str(first["training"]) if first is not None and first["kind"] == "join" else None


def store(logdir: str) -> str | None:
    """Returns the URI of the default store in which the run of the log folder started, or None."""
    try:
        first = next((record for record, _ in read(logdir)), None)
    except OSError:
        return None
    uri = "" if first is None else first.get("store", "")
    return uri if re.fullmatch("sqlite:///(.*/)?mlflow[.]db", uri) else None


def abandoned(logdir: str) -> int | None:
    """Returns the time of the last record, in ms since 1970, if the run was killed, or None.

    The spool of a killed run has no record of its end, and no process holds its lock.
    """
    if joined(logdir) is not None:
        return None
    last_time, kind = 0, ""
    for record, _ in read(logdir):
        kind = record["kind"]
        last_time = record["time"] if "time" in _FIELDS[kind] else last_time
    if kind == "end":
        return None
    try:
        files.lock(os.path.join(logdir, SPOOL), "", _PATIENCE).close()
    except UserError:
        return None
    return last_time


def reason_refused(logdir: str, path: str, folder: str) -> str | None:
    """Returns why a file or folder may not be uploaded, or None.

    A user who can write to the log folder can write any path to the spool. So only files that are
    in the log folder, after links are resolved, are uploaded, to `folder` among the run's
    artifacts.
    """
    root = os.path.realpath(logdir)
    walk = os.walk(path)
    below = (os.path.join(top, n) for top, folders, names in walk for n in (*folders, *names))
    for each in itertools.chain([path], below):
        if os.path.commonpath([root, os.path.realpath(each)]) != root:
            return f"{each!r} lies outside the log folder {logdir!r}"
    # A backslash separates folders on a server that runs Windows.
    parts = re.split(r"[/\\]", folder)
    if folder and (".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in folder):
        return f"folder {folder!r} is not below the run's artifacts"
    return None
