"""Event files: TFRecords of `Event` protobufs, written, read and trimmed without TensorFlow.

TensorBoard's own `EventFileWriter` imports it, and writes from a thread, whose death of a full disk
blocks the training in tensorboard 1.15. The checksums of its `RecordWriter` are computed in Python,
10 MB in a second, which for pictures took longer than to draw them.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import socket
import struct
import time
from typing import TYPE_CHECKING, Callable, Iterator

from compat.tracking.files import replacing

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

_HEADER_BYTES = 12  # uint64 length of the data, uint32 checksum of the length
_CHECKSUM_BYTES = 4  # Behind the data as well.


def event_files(folder: str) -> list[str]:
    """Returns the paths of the event files of one run, in the order TensorBoard reads them."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), "*tfevents*")))


def read_events(path: str) -> Iterator[tuple[bytes, Event]]:
    """Yields each record as it is on disk, with the event in it; stops at a torn record."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorboard.compat.proto.event_pb2 import Event

    with open(path, "rb") as file:
        while True:
            header = file.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES:
                return
            (length,) = struct.unpack("<Q", header[:-_CHECKSUM_BYTES])
            if header != _with_checksum(header[:-_CHECKSUM_BYTES]):
                return
            left = os.path.getsize(path) - file.tell()
            if left < length + _CHECKSUM_BYTES:  # Before it is read: a broken length is any number.
                return
            body = file.read(length + _CHECKSUM_BYTES)
            try:
                event = Event.FromString(body[:-_CHECKSUM_BYTES])
            except DecodeError:
                return
            yield header + body, event


def trim(path: str, keep: Callable[[Event], bool]) -> None:
    """Rewrites an event file, as a whole, without events not to keep, nor a torn last record."""
    with contextlib.suppress(_Unchanged), replacing(path) as file:
        for record, event in read_events(path):
            if keep(event):
                file.write(record)
        if file.tell() == os.path.getsize(path):
            raise _Unchanged


class _Unchanged(Exception):
    """The file has no events to remove, and stays."""


class EventFile:
    """A new event file in a folder, behind all that are there."""

    def __init__(self, folder: str) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        # TensorBoard reads the files by name. Two within a second, or a chief that moved to a
        # machine whose clock is behind, must not sort the later events before the earlier.
        seconds = max([int(time.time()), *(_seconds(path) + 1 for path in event_files(folder))])
        name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.0"
        self.path = os.path.join(folder, name)
        self._file = open(self.path, "xb")  # noqa: SIM115 (until `close`)
        self.write(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def write(self, event: Event) -> None:
        """Writes `event` through to the operating system."""
        os.stat(self.path)  # Raises if the file was removed, where Linux would continue to write.
        data = event.SerializeToString()
        self._file.write(_with_checksum(struct.pack("<Q", len(data))) + _with_checksum(data))
        self._file.flush()

    def close(self) -> None:
        """Closes the file; data that `write` could not write is lost."""
        with contextlib.suppress(OSError):
            self._file.close()


def _with_checksum(data: bytes) -> bytes:
    """Returns data with its checksum behind it, as in TFRecords: a CRC-32C, rotated and moved."""
    import google_crc32c

    crc = google_crc32c.value(data)
    return data + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _seconds(path: str) -> int:
    """Returns the time in an event file's name, in seconds since 1970, or 0."""
    stamp = os.path.basename(path).partition("tfevents.")[2].partition(".")[0]
    return int(stamp) if re.fullmatch("[0-9]{1,18}", stamp) else 0
