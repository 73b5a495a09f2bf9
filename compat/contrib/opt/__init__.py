"""`tf.contrib.opt`: optimizers that wrap those of `tf.train`, with the original results.

optimizer = tf.contrib.opt.MovingAverageOptimizer(tf.train.AdamOptimizer(0.001))
train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
saver = optimizer.swapping_saver()  # Saves the averages in place of the variables.
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
from compat.contrib.opt.external import ExternalOptimizerInterface, ScipyOptimizerInterface
from compat.contrib.opt.ggt import GGTOptimizer
from compat.contrib.opt.wrappers import (
    DropStaleGradientOptimizer,
    MovingAverageOptimizer,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

__all__ = [
    "AdaMaxOptimizer",
    "AdamGSOptimizer",
    "AdamWOptimizer",
    "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer",
    "ExternalOptimizerInterface",
    "GGTOptimizer",
    "LARSOptimizer",
    "LazyAdamOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "NadamOptimizer",
    "ScipyOptimizerInterface",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]
