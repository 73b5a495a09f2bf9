"""Makes names that newer releases moved inside TensorFlow available at their old places.

The packages tf_slim and tensorflow_estimator, no longer maintained, import the old names. This
module adds the names to TensorFlow's modules in this process, and changes no file.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import types
from typing import Any, Callable, Mapping

from compat._tensorflow.release import tf1
from compat.errors import UserError

PACKAGES = ("tf_slim", "tensorflow_estimator")

# Old names in tensorflow.python, and their new locations.
_NAMES = {
    "framework.ops:IndexedSlices": "framework.indexed_slices:IndexedSlices",
    "framework.ops:Tensor": "framework.tensor:Tensor",
    "framework.ops:register_tensor_conversion_function": (
        "framework.tensor_conversion_registry:register_tensor_conversion_function"
    ),
    "ops.array_ops:stack": "ops.array_ops_stack:stack",
    "ops.array_ops:unstack": "ops.array_ops_stack:unstack",
    "ops.control_flow_ops:Assert": "ops.control_flow_assert:Assert",
    "ops.control_flow_ops:case": "ops.control_flow_case:case",
    "ops.control_flow_ops:cond": "ops.cond:cond",
    "ops.control_flow_ops:while_loop": "ops.while_loop:while_loop",
    "ops.variable_scope:variable": "ops.variable_v1:VariableV1",
    "util.nest:is_sequence": "util.nest:is_nested",
    # The attribute that lists exported names; nothing here reads it.
    "util.tf_export:ESTIMATOR_API_NAME": "util.tf_export:TENSORFLOW_API_NAME",
}
_INSIDE = "tensorflow.python."
# Locations of modules until 2.4, by their later locations.
_EARLIER = {_INSIDE + "distribute.v1.all_reduce": _INSIDE + "distribute.all_reduce"}
_NORMALIZATION = ".src.legacy_tf_layers.normalization"


def load(name: str) -> Any:
    """Returns the module `name`, also in old releases that have it under an earlier name."""
    module = _import(name) if name in _EARLIER else None
    return module or importlib.import_module(_EARLIER.get(name, name))


@functools.lru_cache(maxsize=None)
def put_back() -> None:
    """Restores the old names in TensorFlow's modules; further calls do nothing."""
    for former, now in _NAMES.items():
        place, _, name = former.partition(":")
        old, new = _import(_INSIDE + place), _import(_INSIDE + now.partition(":")[0])
        if not hasattr(old, name) and hasattr(new, now.partition(":")[2]):
            setattr(old, name, getattr(new, now.partition(":")[2]))
    layers = _import(_INSIDE + "layers.normalization")
    find = getattr(layers, "__getattr__", None)
    if find is not None:
        layers.__getattr__ = functools.partial(_normalization, find)
    # Estimators with a distribution strategy use it; without a cluster it has no effect.
    name = _INSIDE + "distribute.estimator_training"
    if _import(name) is None:
        module: Any = types.ModuleType(name)
        module.init_run_config = _init_run_config
        module.should_run_distribute_coordinator = lambda config: False
        sys.modules[name] = module
        _import(_INSIDE + "distribute").estimator_training = module
    # Estimators on TPUs, whose dependencies TensorFlow has removed.
    name = "tensorflow_estimator._api.v1.estimator.tpu"
    sys.modules.setdefault(name, types.ModuleType(name))


def silence_deprecations() -> None:
    """Disables TensorFlow's deprecation warnings, since an old program would cause many of them."""
    deprecation = _import(_INSIDE + "util.deprecation")
    deprecation._PRINT_DEPRECATION_WARNINGS = False


def _normalization(find: Callable[[str], Any], name: str) -> Any:
    """Returns the class `name` of `layers.normalization`, which Keras 2 moved in 2.13.

    `find` is TensorFlow's own lookup. If it fails, the class comes from the package that `tf.keras`
    uses, or, if that is Keras 3, from tf-keras.
    """
    try:
        return find(name)
    except ImportError:
        keras_package = tf1.keras.layers.Layer.__module__.partition(".")[0]
    modules = (_import(package + _NORMALIZATION) for package in (keras_package, "tf_keras"))
    name = re.sub("(?i)norm$", lambda short: short.group() + "alization", name)
    return getattr(next(filter(None, modules)), name)


def _init_run_config(config: Any, tf_config: Mapping[str, Any]) -> None:
    chosen = config._experimental_distribute
    if chosen is not None:
        config._train_distribute = config._train_distribute or chosen.train_distribute
        config._eval_distribute = config._eval_distribute or chosen.eval_distribute
    config._distribute_coordinator_mode = None
    remote = getattr(chosen, "remote_cluster", None)
    jobs = sorted(tf1.train.ClusterSpec(remote or tf_config.get("cluster", {})).jobs)
    strategy = config._train_distribute
    by_servers = isinstance(strategy, tf1.distribute.experimental.ParameterServerStrategy)
    if jobs and by_servers and not remote and strategy.num_replicas_in_sync == 1:
        # Without this module, an Estimator trains as without a strategy: each worker updates the
        # variables.
        config._train_distribute = config._eval_distribute = None
        config._init_distributed_setting_from_environment_var(_with_chief(tf_config))
        config._maybe_overwrite_session_config_for_distributed_training()
        _take_functions()
        return
    if jobs:
        raise UserError(
            f"{'DistributeConfig' if remote else 'TF_CONFIG'} has a cluster of {', '.join(jobs)} "
            "and the Estimator a distribution strategy, which TensorFlow trains in one process "
            "only since 2.16; remove the strategy to train with parameter servers"
        )
    config._init_distributed_setting_from_environment_var({})


@functools.lru_cache(maxsize=None)
def _take_functions() -> None:
    """Makes Estimators accept an `input_fn` that returns a function that makes the batch.

    With a distribution strategy, TensorFlow accepts it, too.
    """
    util: Any = importlib.import_module("tensorflow_estimator.python.estimator.util")
    parse = util.parse_input_fn_result
    util.parse_input_fn_result = lambda inputs: parse(inputs() if callable(inputs) else inputs)


def _with_chief(tf_config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `tf_config` with its first worker as the chief, if it has no chief or master.

    A distribution strategy makes the first worker the chief, too.
    """
    cluster, task = dict(tf_config["cluster"]), dict(tf_config["task"])
    if not {"chief", "master"} & {*cluster}:
        first, *others = cluster.pop("worker")
        cluster.update({"chief": [first]}, **({"worker": others} if others else {}))
        if task["type"] == "worker":
            index = int(task["index"]) - 1
            task = {"type": "chief", "index": 0} if index < 0 else {**task, "index": index}
    return {**tf_config, "cluster": cluster, "task": task}


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
