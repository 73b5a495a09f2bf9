"""Event files: TFRecords of `Event` protobufs, written, read and trimmed without TensorFlow.

TensorBoard's own `EventFileWriter` imports TensorFlow, and writes from a thread; in tensorboard
1.15, training blocks if that thread fails because the disk is full. The checksums of its
`RecordWriter` are computed in Python at 10 MB per second, which took longer for images than drawing
them.
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
_CHECKSUM_BYTES = 4  # The data is followed by its checksum, too.


def event_files(folder: str) -> list[str]:
    """Returns the paths of the event files of one run, in the order TensorBoard reads them."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), "*tfevents*")))


def read_events(path: str) -> Iterator[tuple[bytes, Event]]:
    """Yields each record as stored, with its event; stops at an incomplete record."""
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
            available = os.path.getsize(path) - file.tell()
            # Compare before reading: a damaged length can be any number.
            if available < length + _CHECKSUM_BYTES:
                return
            body = file.read(length + _CHECKSUM_BYTES)
            try:
                event = Event.FromString(body[:-_CHECKSUM_BYTES])
            except DecodeError:
                return
            yield header + body, event


def trim(path: str, keep: Callable[[Event], bool]) -> None:
    """Removes an incomplete record, and events for which `keep` returns False, atomically."""
    with contextlib.suppress(_Unchanged), replacing(path) as file:
        for record, event in read_events(path):
            if keep(event):
                file.write(record)
        if file.tell() == os.path.getsize(path):
            raise _Unchanged


class _Unchanged(Exception):
    """Raised if a file has no events to remove, so that it is not changed."""


class EventFile:
    """A new event file in a folder, which TensorBoard reads after all existing files."""

    def __init__(self, folder: str) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        # TensorBoard reads the files in the order of their names. If two files are created within a
        # second, or the chief moved to a machine whose clock is behind, later events must not sort
        # before earlier ones.
        seconds = max([int(time.time()), *(_seconds(path) + 1 for path in event_files(folder))])
        name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.0"
        self.path = os.path.join(folder, name)
        self._file = open(self.path, "xb")  # noqa: SIM115 (until `close`)
        self.write(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def write(self, event: Event) -> None:
        """Writes `event` through to the operating system."""
        # This raises an error if the file was removed; Linux would continue to write.
        os.stat(self.path)
        data = event.SerializeToString()
        self._file.write(_with_checksum(struct.pack("<Q", len(data))) + _with_checksum(data))
        self._file.flush()

    def close(self) -> None:
        """Closes the file; data that `write` could not write is lost."""
        with contextlib.suppress(OSError):
            self._file.close()


def _with_checksum(data: bytes) -> bytes:
    """Returns data followed by its masked CRC-32C, as in TFRecords."""
    import google_crc32c

    crc = google_crc32c.value(data)
    return data + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _seconds(path: str) -> int:
    """Returns the time in an event file's name, in seconds since 1970; 0 if it has none."""
    stamp = os.path.basename(path).partition("tfevents.")[2].partition(".")[0]
    return int(stamp) if re.fullmatch("[0-9]{1,18}", stamp) else 0
