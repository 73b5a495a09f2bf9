"""Summaries as before 1.0, with tags as given, and writers of events.

Since 1.0 a summary has a name, which name scopes prefix and which may not contain spaces.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any, Sequence

from compat._tensorflow import tf1


class EventsWriter:
    """Writes events to a file whose name begins with `prefix`, as `pywrap_tensorflow` until 2.0."""

    def __init__(self, prefix: str | bytes) -> None:
        start = f"{os.fsdecode(prefix)}.out.tfevents.{int(time.time()):010d}"
        self._name = f"{start}.{socket.gethostname()}"
        self._writer = tf1.python_io.TFRecordWriter(self._name)
        self.WriteEvent(tf1.Event(wall_time=time.time(), file_version="brain.Event:2"))

    def WriteEvent(self, event: Any) -> None:
        """Adds an event."""
        self._writer.write(event.SerializeToString())

    def FileName(self) -> str:
        """Returns the name of the file."""
        return self._name

    def Flush(self) -> bool:
        """Writes the added events to the file; returns whether that succeeded."""
        self._writer.flush()
        return True

    def Close(self) -> bool:
        """Closes the file; returns whether that succeeded."""
        self._writer.close()
        return True


def _summary(kind: str, name: str | None, collections: Sequence[str] | None, **inputs: Any) -> Any:
    with tf1.name_scope(name, kind.replace("V2", ""), list(inputs.values())):
        value = "values" if "values" in inputs else "tensor"
        inputs[value] = tf1.convert_to_tensor(inputs[value])
        summary = getattr(tf1.raw_ops, kind)(**inputs)
    for collection in [tf1.GraphKeys.SUMMARIES] if collections is None else collections:
        tf1.add_to_collection(collection, summary)
    return summary


def scalar_summary(
    tags: Any, values: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> Any:
    """Returns a summary of scalars; `values` has the shape of `tags`."""
    return _summary("ScalarSummary", name, collections, tags=tags, values=values)


def histogram_summary(
    tag: Any, values: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> Any:
    """Returns a histogram summary of `values`."""
    return _summary("HistogramSummary", name, collections, tag=tag, values=values)


def image_summary(
    tag: Any,
    tensor: Any,
    max_images: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Any:
    """Returns a summary of images, uint8 or float32 `[batch, height, width, channels]`."""
    inputs = {"tag": tag, "tensor": tensor, "max_images": max_images}
    return _summary("ImageSummary", name, collections, **inputs)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: float,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Any:
    """Returns a summary of audio, float32 `[batch, frames]` or `[batch, frames, channels]`."""
    inputs = {"tag": tag, "tensor": tensor, "sample_rate": sample_rate, "max_outputs": max_outputs}
    return _summary("AudioSummaryV2", name, collections, **inputs)
