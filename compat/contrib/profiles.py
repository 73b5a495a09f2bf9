"""`tf.contrib.tfprof`, today `tf.profiler`."""

from __future__ import annotations

import sys
from typing import Any

from compat._tensorflow import tf1

_OPTIONS = tf1.profiler.ProfileOptionBuilder
TRAINABLE_VARS_PARAMS_STAT_OPTIONS = _OPTIONS.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = _OPTIONS.float_operation()
PRINT_ALL_TIMING_MEMORY = _OPTIONS.time_and_memory()
advise = tf1.profiler.advise
model_analyzer = sys.modules[__name__]  # Scripts import it by this name.


def print_model_analysis(
    graph: Any,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> Any:
    """Prints and returns a profile of a graph."""
    return tf1.profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)
