"""`tf.contrib.distribute`: strategies whose arguments include a number of GPUs.

Also `replicate_model_fn` of `tf.contrib.estimator`, which preceded them.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from compat._tensorflow import tf1

_resolvers: Any = tf1.distribute.cluster_resolver


class DistributeConfig(NamedTuple):
    """The strategies of an Estimator, for `RunConfig(experimental_distribute=...)`."""

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None


def mirrored(devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> Any:
    """Returns a strategy for these devices.

    The CPU replaces a missing device, as in old releases. TensorFlow 2 reduces values of several
    devices by collective operations, which would block forever if two of them are the same device.
    """
    if cross_device_ops is None and not all(map(_is_here, devices or ())):
        cross_device_ops = tf1.distribute.ReductionToOneDevice()
    return tf1.distribute.MirroredStrategy(devices, cross_device_ops)


def _is_here(device: str) -> bool:
    spec = tf1.DeviceSpec.from_string(device)
    devices = tf1.config.experimental.list_logical_devices(spec.device_type)
    return any(d.name.endswith(f":{spec.device_index}") for d in devices)


def MirroredStrategy(  # noqa: N802 - TensorFlow's name
    devices: Sequence[str] | None = None,
    num_gpus: int | None = None,
    num_gpus_per_worker: int | None = None,
    cross_device_ops: Any = None,
    auto_shard_dataset: bool = False,
    cross_tower_ops: Any = None,
    prefetch_on_device: bool | None = None,
) -> Any:
    """Returns a strategy for these devices or number of GPUs; the CPU replaces missing ones.

    Each replica gets whole batches, of the size that the input function gives them.
    """
    del prefetch_on_device, auto_shard_dataset  # They do not change results, or are for clusters.
    count = num_gpus_per_worker if num_gpus is None else num_gpus
    if count is not None:
        if devices is not None:
            raise ValueError("Must only specify one of `devices` and `num_gpus_per_worker`.")
        devices = [f"/device:GPU:{i}" for i in range(count)] or ["/device:CPU:0"]
    return mirrored(devices, cross_tower_ops if cross_device_ops is None else cross_device_ops)


def replicate_model_fn(
    model_fn: Callable[..., Any], loss_reduction: Any = None, devices: Sequence[str] | None = None
) -> Callable[..., Any]:
    """Returns a model function that trains with the whole batch at once.

    In old releases each device got a part of the batch, and the gradients of all parts were
    applied. The result is the same except for operations that depend on the size of the part, such
    as batch normalization.
    """
    del loss_reduction  # It described how to reduce the losses of the parts.
    count = len(devices or tf1.config.experimental.list_physical_devices("GPU"))
    if count > 1:
        print(
            f"compat: replicate_model_fn does not split batches between {count} devices any more; "
            "give RunConfig(train_distribute=tf.distribute.MirroredStrategy()) in its place",
            flush=True,
        )
    return model_fn


def TowerOptimizer(optimizer_or_optimizer_fn: Any) -> Any:  # noqa: N802 - TensorFlow's name
    """Returns the optimizer unchanged: its gradients are those of the whole batch already."""
    if callable(optimizer_or_optimizer_fn):
        return optimizer_or_optimizer_fn()
    return optimizer_or_optimizer_fn


def ParameterServerStrategy(num_gpus_per_worker: int = 0) -> Any:  # noqa: N802 - TensorFlow's name
    """Returns the strategy for the cluster in TF_CONFIG, or without TF_CONFIG for this process."""
    strategy = tf1.distribute.experimental.ParameterServerStrategy
    return strategy(_resolver(num_gpus_per_worker))


def CollectiveAllReduceStrategy(  # noqa: N802 - TensorFlow's name
    num_gpus_per_worker: int = 0, communication: Any = None
) -> Any:
    """Returns the strategy for the cluster in TF_CONFIG, or without TF_CONFIG for this process."""
    chosen = {} if communication is None else {"communication": communication}
    strategy = tf1.distribute.experimental.MultiWorkerMirroredStrategy
    return strategy(cluster_resolver=_resolver(num_gpus_per_worker), **chosen)


def _resolver(num_gpus: int) -> Any:
    resolver = _resolvers.TFConfigClusterResolver()
    return _resolvers.SimpleClusterResolver(
        resolver.cluster_spec(),
        task_type=resolver.task_type,
        task_id=resolver.task_id,
        num_accelerators={"GPU": num_gpus},
        rpc_layer=resolver.rpc_layer,
    )
