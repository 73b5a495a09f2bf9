"""`tf.contrib.opt`: optimizers of `tf.train` made of others, with their variables and numbers.

getter = tf.contrib.opt.ElasticAverageCustomGetter("/job:worker/task:0")
with tf.variable_scope("", custom_getter=getter):
    loss = model()
inner = tf.train.GradientDescentOptimizer(0.1)
optimizer = tf.contrib.opt.ElasticAverageOptimizer(inner, 2, getter, communication_period=20)
train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
hooks = [optimizer.make_session_run_hook(is_chief=True, task_index=0)]
"""

from __future__ import annotations

from compat.contrib.opt.adaptive import (
    AdaMaxOptimizer,
    AdamGSOptimizer,
    LARSOptimizer,
    LazyAdamOptimizer,
    NadamOptimizer,
)
from compat.contrib.opt.decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from compat.contrib.opt.elastic import ElasticAverageCustomGetter, ElasticAverageOptimizer
from compat.contrib.opt.external import ExternalOptimizerInterface, ScipyOptimizerInterface
from compat.contrib.opt.ggt import GGTOptimizer
from compat.contrib.opt.model_average import (
    AGNCustomGetter,
    AGNOptimizer,
    ModelAverageCustomGetter,
    ModelAverageOptimizer,
)
from compat.contrib.opt.signs import AddSignOptimizer, PowerSignOptimizer
from compat.contrib.opt.wrappers import (
    DropStaleGradientOptimizer,
    MovingAverageOptimizer,
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

__all__ = [
    "AGNCustomGetter",
    "AGNOptimizer",
    "AdaMaxOptimizer",
    "AdamGSOptimizer",
    "AdamWOptimizer",
    "AddSignOptimizer",
    "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer",
    "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer",
    "ExternalOptimizerInterface",
    "GGTOptimizer",
    "LARSOptimizer",
    "LazyAdamOptimizer",
    "ModelAverageCustomGetter",
    "ModelAverageOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "NadamOptimizer",
    "PowerSignOptimizer",
    "ScipyOptimizerInterface",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]
