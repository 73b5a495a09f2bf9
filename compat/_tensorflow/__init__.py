"""TensorFlow under two stable names, and the facts about the installed release.

    from compat._tensorflow import tf, tf1  # tensorflow.compat.v2, tensorflow.compat.v1

TensorFlow is imported on the first access to an attribute.
"""

from compat._tensorflow.release import (
    bulk_saver_builder,
    coordinator_module,
    deferred_captures,
    extendable,
    gpus,
    keep_functions,
    parameter_server_strategy,
    per_worker_values,
    quietly,
    register_function,
    session_interface,
    tf,
    tf1,
    traced,
    version,
)

__all__ = [
    "bulk_saver_builder",
    "coordinator_module",
    "deferred_captures",
    "extendable",
    "gpus",
    "keep_functions",
    "parameter_server_strategy",
    "per_worker_values",
    "quietly",
    "register_function",
    "session_interface",
    "tf",
    "tf1",
    "traced",
    "version",
]
