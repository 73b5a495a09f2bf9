"""Summaries in the formats that TensorBoard's plugins read in all releases, without TensorFlow."""

from __future__ import annotations

import io
import re
import time
from typing import TYPE_CHECKING, Any, Collection, Mapping

from compat.tracking.writer import Param

if TYPE_CHECKING:
    import numpy as np
    from tensorboard.compat.proto.summary_pb2 import Summary

# `tensorboard.plugins.hparams.api` has these functions, too, but imports TensorFlow.
SESSION_START = "_hparams_/session_start_info"
SESSION_END = "_hparams_/session_end_info"
CHARTS = "custom_scalars__config__"
_TABLE = "params"
PARAM_TAGS = (SESSION_START, _TABLE)


def image_summary(tag: str, images: np.ndarray) -> Summary:
    """Returns the summary of images, uint8 `[k, h, w, c]`, c = 1 (gray), 3 (RGB) or 4 (RGBA)."""
    from tensorboard.plugins.image.metadata import create_summary_metadata

    if str(images.dtype) != "uint8" or images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise ValueError(
            f"images {tag!r} are {images.dtype} {list(images.shape)};"
            " expected uint8 [k, h, w, c] with c = 1, 3 or 4"
        )
    _, height, width, _ = images.shape
    # The plugin's tensor: width and height as text, then one PNG per image.
    texts = [str(width).encode(), str(height).encode()] + [png(image) for image in images]
    metadata = create_summary_metadata(display_name=None, description=None)
    return _tensor_summary(tag, metadata, texts)


def pr_curve_summary(tag: str, curve: np.ndarray) -> Summary:
    """Returns the summary of a precision-recall curve, float64 `[6, n]`; see `Writer.pr_curves`."""
    from tensorboard.plugins.pr_curve.metadata import create_summary_metadata

    if curve.ndim != 2 or len(curve) != 6:
        raise ValueError(f"curve {tag!r} is {list(curve.shape)}; expected [6, thresholds]")
    metadata = create_summary_metadata(None, None, num_thresholds=curve.shape[1])
    return _tensor_summary(tag, metadata, curve)


def figure_image(figure: Any) -> np.ndarray:
    """Returns a `matplotlib.figure.Figure` as uint8 `[1, h, w, 4]`."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)  # This canvas needs no display.
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[np.newaxis]


def param_summaries(
    values: Mapping[str, Param], tuned: Collection[str] | None = None, run: str | None = None
) -> list[Summary]:
    """Returns the tuned values for the HPARAMS tab, and all values as a table for the TEXT tab.

    `run` is the name of the row in the HPARAMS tab. Runs with one name, by default those with equal
    settings, share a row.
    """
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.text.summary_v2 import text_pb

    columns = {name: v for name, v in values.items() if tuned is None or name in tuned}
    return [hparams_pb(columns, trial_id=run), text_pb(_TABLE, table(values))]


def charts_summary(charts: Mapping[str, Collection[str]]) -> Summary:
    """Returns the layout of the CUSTOM SCALARS tab; `charts` maps a chart's name to its curves."""
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    category = layout_pb2.Category(title="curves")
    for title, tags in charts.items():
        # These are regular expressions, which TensorBoard matches with the tags of all runs.
        exact = [f"^{re.escape(tag)}$" for tag in tags]
        lines = layout_pb2.MultilineChartContent(tag=exact)
        category.chart.add(title=title, multiline=lines)
    layout = layout_pb2.Layout(category=[category]).SerializeToString()
    return _tensor_summary(CHARTS, metadata.create_summary_metadata(), layout)


def end_summary(success: bool) -> Summary:
    """Returns the summary of the end of the run, at the current time, for the HPARAMS tab."""
    from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
    from tensorboard.plugins.hparams.metadata import create_summary_metadata

    end = plugin_data_pb2.SessionEndInfo(
        status=api_pb2.STATUS_SUCCESS if success else api_pb2.STATUS_FAILURE,
        end_time_secs=time.time(),
    )
    metadata = create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=end))
    return _tensor_summary(SESSION_END, metadata, 0.0)


def table(values: Mapping[str, Param]) -> str:
    r"""Returns `values` as a Markdown table.

    >>> table({"steps": 5})
    '| name | value |\n|---|---|\n| steps | 5 |'
    """
    lines = ["| name | value |", "|---|---|"]
    for name, value in sorted(values.items()):
        cell = str(value).replace("|", r"\|").replace("\n", " ")
        lines.append(f"| {name} | {cell} |")
    return "\n".join(lines)


def _tensor_summary(tag: str, metadata: Any, values: Any) -> Summary:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.util.tensor_util import make_tensor_proto

    value = Summary.Value(tag=tag, metadata=metadata, tensor=make_tensor_proto(values))
    return Summary(value=[value])


def png(image: np.ndarray) -> bytes:
    """Returns a PNG file of an image, uint8 `[h, w, c]` with c = 1, 3 or 4."""
    from PIL import Image

    encoded = io.BytesIO()
    # Pillow expects gray images as [h, w]. Its default level of compression, 6, would take twice as
    # long, and make the file only a tenth smaller.
    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    picture.save(encoded, "PNG", compress_level=3)
    return encoded.getvalue()
