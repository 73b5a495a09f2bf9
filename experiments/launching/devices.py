"""The threads and the GPUs of a task: what TensorFlow is given before it has any device.

Options that are given to a session of a cluster are ignored: the devices are the server's.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Mapping, MutableMapping

from compat import UserError, tf, tf1
from compat._tensorflow.release import version
from compat.cluster.address import split_address
from compat.cluster.roles import Role
from compat.cluster.spec import ClusterSpec, Task, all_tasks

# What makes products of float32 in bfloat16 when a graph is optimized, of TensorFlow 2.9 and later.
_BFLOAT16 = "auto_mixed_precision_onednn_bfloat16"


def _has_bfloat16() -> bool:
    return hasattr(tf1.ConfigProto().graph_options.rewrite_options, _BFLOAT16)


def products(settings: Any) -> str:
    """Returns the precision of products for all of a graph.

    An experiment with a setting `precision` of its own, such as the recommender, casts by itself.
    """
    (field,) = (field for field in dataclasses.fields(settings) if field.name == "precision")
    return str(settings.precision) if field.metadata["group"] == "training" else "float32"


def check_precision(
    precision: str,
    processor: str = "/proc/cpuinfo",
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Raises a `UserError` where this machine makes no products in bfloat16, if asked for them.

    TensorFlow itself would leave them float32, and log a line at most.
    """
    if precision != "bfloat16":
        return
    if not _has_bfloat16():
        raise UserError(
            f"--precision=bfloat16 needs TensorFlow 2.9 or later, this is {version()}; leave it out"
        )
    flags = Path(processor).read_text("utf-8").split() if os.path.exists(processor) else []
    if not {"avx512_bf16", "amx_bf16"} & set(flags):
        raise UserError(
            "--precision=bfloat16 needs a processor with AVX512-BF16 or AMX, and this one has "
            "neither; leave it out"
        )
    if environment.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        raise UserError(
            "--precision=bfloat16 needs oneDNN, which TF_ENABLE_ONEDNN_OPTS=0 turns off; unset it"
        )


def hide_gpus(task: Task, role: Role, environment: MutableMapping[str, str] = os.environ) -> None:
    """Hides all GPUs from a task that computes nothing, unless the user has chosen some for it.

    CUDA reads the variable when TensorFlow first asks for a device, not when it is loaded.
    """
    if task.job == "ps" or role in (Role.COORDINATE, Role.EVALUATE):
        environment.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def tasks_here(cluster: ClusterSpec | None, task: Task) -> int:
    """Returns how many tasks of the cluster share the host of `task`; 1 without a cluster."""
    if cluster is None:
        return 1
    hosts = [split_address(cluster.address_of(each))[0] for each in all_tasks(cluster)]
    return hosts.count(split_address(cluster.address_of(task))[0])


def session_config(config: Any, tasks: int = 1) -> Any:
    """Returns the `ConfigProto` for a `compat.Server` or, where there is none, for a session.

    So many tasks of the cluster share the cores of this machine.
    """
    proto = tf1.ConfigProto(
        inter_op_parallelism_threads=config.inter_op_threads,
        intra_op_parallelism_threads=_within_operations(config, tasks),
    )
    # A thread without work looks for some, on a core that another task would need.
    proto.experimental.disable_thread_spinning = tasks > 1
    # A fraction is taken at once; growth beside it would make it a limit that nobody notices.
    proto.gpu_options.allow_growth = config.gpu_memory_fraction is None
    proto.gpu_options.per_process_gpu_memory_fraction = config.gpu_memory_fraction or 0.0
    if products(config) == "bfloat16":
        setattr(proto.graph_options.rewrite_options, _BFLOAT16, 1)  # On, which has no public name.
    return proto


def _within_operations(config: Any, tasks: int) -> int:
    """Returns the threads within an operation: as chosen, or this task's share of the cores."""
    if config.intra_op_threads or tasks == 1:
        return int(config.intra_op_threads)
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return max(1, cores // tasks)


def configure_eager(config: Any, *, alone: bool, tasks: int = 1) -> None:
    """Gives the same to what this process, `alone` or with a server, computes eagerly."""
    if alone and config.gpu_memory_fraction is not None:
        raise UserError(
            f"--gpu_memory_fraction={config.gpu_memory_fraction} needs a server on the modern "
            "runtime; add --strategy=ps or --runtime=legacy, or leave it out"
        )
    if not alone and config.inter_op_threads == 1:  # It would wait for itself without end.
        raise UserError(
            "--inter_op_threads=1 leaves a server of the modern runtime no thread to answer others;"
            " give 2 or more, or 0 for one per core"
        )
    if _has_bfloat16():
        tf.config.optimizer.set_experimental_options({_BFLOAT16: products(config) == "bfloat16"})
    tf.config.threading.set_inter_op_parallelism_threads(config.inter_op_threads)
    tf.config.threading.set_intra_op_parallelism_threads(_within_operations(config, tasks))
    if config.gpu_memory_fraction is None:
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
