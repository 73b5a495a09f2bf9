"""Sets the threads, the GPUs and the precision of a task, before TensorFlow has any device.

In a cluster the server has the devices, so these options are for the server; TensorFlow ignores
them in a session.
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

# The option of TensorFlow 2.9 and later that makes its graph optimizer compute products of float32
# in bfloat16.
_BFLOAT16 = "auto_mixed_precision_onednn_bfloat16"


def _has_bfloat16() -> bool:
    return hasattr(tf1.ConfigProto().graph_options.rewrite_options, _BFLOAT16)


def products(settings: Any) -> str:
    """Returns the precision in which TensorFlow is to compute all matrix products of a graph.

    If an experiment declares a setting `precision` itself, as the recommender does, this is
    "float32", since such an experiment casts its tensors where it wants to.
    """
    (field,) = (field for field in dataclasses.fields(settings) if field.name == "precision")
    return str(settings.precision) if field.metadata["group"] == "training" else "float32"


def check_precision(
    precision: str,
    processor: str = "/proc/cpuinfo",
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Raises a `UserError` if `precision` is "bfloat16" and this machine cannot compute in it.

    TensorFlow itself would compute in float32, and log at most a line.
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
    """Hides all GPUs from parameter servers, coordinators and evaluators.

    It sets CUDA_VISIBLE_DEVICES, unless the user has set it. TensorFlow may be loaded already: CUDA
    reads the variable when TensorFlow first asks for a device.
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
    """Returns the `ConfigProto` for a `compat.Server` or, without a cluster, for a session.

    `config` are the settings; `tasks` is the number of tasks that share the cores of this machine.
    """
    proto = tf1.ConfigProto(
        inter_op_parallelism_threads=config.inter_op_threads,
        intra_op_parallelism_threads=_within_operations(config, tasks),
    )
    # A thread without work would spin, on a core that another task needs.
    proto.experimental.disable_thread_spinning = tasks > 1
    # With a fraction, TensorFlow allocates that memory at once; with growth as well it would not,
    # and the fraction would only be a limit.
    proto.gpu_options.allow_growth = config.gpu_memory_fraction is None
    proto.gpu_options.per_process_gpu_memory_fraction = config.gpu_memory_fraction or 0.0
    if products(config) == "bfloat16":
        setattr(proto.graph_options.rewrite_options, _BFLOAT16, 1)  # ON, which has no public name.
    return proto


def _within_operations(config: Any, tasks: int) -> int:
    """Returns the threads within an operation: as chosen, or this task's share of the cores."""
    if config.intra_op_threads or tasks == 1:
        return int(config.intra_op_threads)
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return max(1, cores // tasks)


def configure_eager(config: Any, *, alone: bool, tasks: int = 1) -> None:
    """Sets the options of `session_config` for the eager runtime of this process.

    Args:
      config: the settings.
      alone: whether this process has no server.
      tasks: the number of tasks that share the cores of this machine.

    Raises:
      UserError: --gpu_memory_fraction is given without a server; or --inter_op_threads=1 with a
        server, which would have no thread left to answer other tasks.
    """
    if alone and config.gpu_memory_fraction is not None:
        raise UserError(
            f"--gpu_memory_fraction={config.gpu_memory_fraction} needs a server on the modern "
            "runtime; add --strategy=ps or --runtime=legacy, or leave it out"
        )
    if not alone and config.inter_op_threads == 1:  # The server would wait for itself forever.
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
