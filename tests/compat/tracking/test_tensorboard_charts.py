"""The layout of TensorBoard's CUSTOM SCALARS tab, read back."""

from __future__ import annotations

import re

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.util import tensor_util

from compat.tracking import TensorBoard


def test_charts_are_recorded_once(logdir):
    for resume_step in (None, 5):
        writer = TensorBoard(logdir, resume_step=resume_step)
        writer.charts({"cost": ["train/cost", "validation/cost"], "a.b": ["train/a.b"]})
        writer.close()
    (content,) = EventAccumulator(logdir).Reload().Tensors("custom_scalars__config__")
    layout = layout_pb2.Layout.FromString(tensor_util.make_ndarray(content.tensor_proto).item())
    cost, other = layout.category[0].chart
    assert (cost.title, list(cost.multiline.tag)) == ("cost", ["^train/cost$", "^validation/cost$"])
    assert re.match(other.multiline.tag[0], "train/a.b")
    assert not re.match(other.multiline.tag[0], "train/a_b")
