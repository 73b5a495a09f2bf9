"""Summaries from before 1.0, whose tags are used as given.

Since 1.0 a summary has a name, which name scopes prefix and which may not contain spaces.
"""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf1


def _collected(summary: Any, collections: Sequence[str] | None) -> Any:
    for name in [tf1.GraphKeys.SUMMARIES] if collections is None else collections:
        tf1.add_to_collection(name, summary)
    return summary


def scalar_summary(
    tags: Any, values: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> Any:
    """Returns a summary of scalars; `values` has the shape of `tags`."""
    with tf1.name_scope(name, "ScalarSummary", [tags, values]):
        values = tf1.convert_to_tensor(values)
        summary = tf1.raw_ops.ScalarSummary(tags=tags, values=values)
    return _collected(summary, collections)


def histogram_summary(
    tag: Any, values: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> Any:
    """Returns a histogram summary of `values`."""
    with tf1.name_scope(name, "HistogramSummary", [tag, values]):
        values = tf1.convert_to_tensor(values)
        summary = tf1.raw_ops.HistogramSummary(tag=tag, values=values)
    return _collected(summary, collections)


def image_summary(
    tag: Any,
    tensor: Any,
    max_images: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Any:
    """Returns a summary of images, uint8 or float32 `[batch, height, width, channels]`."""
    with tf1.name_scope(name, "ImageSummary", [tag, tensor]):
        tensor = tf1.convert_to_tensor(tensor)
        summary = tf1.raw_ops.ImageSummary(tag=tag, tensor=tensor, max_images=max_images)
    return _collected(summary, collections)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: float,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Any:
    """Returns a summary of audio, float32 `[batch, frames]` or `[batch, frames, channels]`."""
    with tf1.name_scope(name, "AudioSummary", [tag, tensor]):
        tensor = tf1.convert_to_tensor(tensor)
        summary = tf1.raw_ops.AudioSummaryV2(
            tag=tag, tensor=tensor, sample_rate=sample_rate, max_outputs=max_outputs
        )
    return _collected(summary, collections)
