"""A policy and its value in one network, for a world of numbered states."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat import tf
from models.mlp import normal


class ActorCritic(tf.Module):
    """One hidden layer, and on it the logits of the actions and the value of the state.

    Args:
      states: number of states.
      actions: number of actions in each.
      units: hidden units, with tanh activations.
      seed: seed of the weights; equal seeds give equal weights on every runtime.
    """

    def __init__(self, states: int, actions: int, units: int = 32, seed: int = 1) -> None:
        super().__init__(name="actor_critic")
        random = np.random.RandomState(seed)
        self.hidden = tf.Variable(normal(random, [states, units]), name="hidden")
        # Small, so that every action is about as likely at first.
        self.policy = tf.Variable(normal(random, [units, actions], 0.01), name="policy")
        self.value = tf.Variable(np.zeros([units, 1], np.float32), name="value")

    def __call__(self, states: Any) -> Any:
        """Returns logits, float32 `[batch, actions]`, and values, float32 `[batch]`.

        Args:
          states: int64 `[batch]`.
        """
        hidden = tf.tanh(tf.gather(self.hidden, states))
        return tf.matmul(hidden, self.policy), tf.squeeze(tf.matmul(hidden, self.value), 1)
