"""The settings and the end of a run, for TensorBoard's HPARAMS and TEXT tabs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Mapping

from compat.tracking.interface import Param

if TYPE_CHECKING:
    from tensorboard.compat.proto.summary_pb2 import Summary

# `tensorboard.plugins.hparams.api` has them too, but imports TensorFlow.
SESSION_START = "_hparams_/session_start_info"
SESSION_END = "_hparams_/session_end_info"
TABLE = "params"
PARAM_TAGS = (SESSION_START, TABLE)


def param_summaries(values: Mapping[str, Param]) -> list[Summary]:
    """Returns the settings for the HPARAMS tab, and as a Markdown table for the TEXT tab.

    No experiment is described beside them: TensorBoard then finds out the settings and metrics of
    all the runs that it is shown.
    """
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.text.summary_v2 import text_pb

    return [hparams_pb(dict(values)), text_pb(TABLE, table(values))]


def end_summary(success: bool) -> Summary:
    """Returns the end of the run, now, for the HPARAMS tab."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
    from tensorboard.plugins.hparams.metadata import create_summary_metadata
    from tensorboard.util.tensor_util import make_tensor_proto

    end = plugin_data_pb2.SessionEndInfo(
        status=api_pb2.STATUS_SUCCESS if success else api_pb2.STATUS_FAILURE,
        end_time_secs=time.time(),
    )
    return Summary(
        value=[
            Summary.Value(
                tag=SESSION_END,
                metadata=create_summary_metadata(
                    plugin_data_pb2.HParamsPluginData(session_end_info=end)
                ),
                tensor=make_tensor_proto(0.0),
            )
        ]
    )


def table(values: Mapping[str, Param]) -> str:
    r"""Returns `values` as a Markdown table.

    >>> table({"steps": 5})
    '| name | value |\n|---|---|\n| steps | 5 |'
    """
    cells = {
        name: str(value).replace("|", r"\|").replace("\n", " ") for name, value in values.items()
    }
    rows = [f"| {name} | {cells[name]} |" for name in sorted(cells)]
    return "\n".join(["| name | value |", "|---|---|", *rows])
