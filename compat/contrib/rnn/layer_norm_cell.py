"""`tf.contrib.rnn.LayerNormBasicLSTMCell`, with the original variables and results."""

from __future__ import annotations

from typing import Any, Callable

from compat._tensorflow import tf1
from compat.contrib.rnn import cells

_EPSILONS = {"float16": 1e-3}


class LayerNormBasicLSTMCell(cells.RNNCell):
    """An LSTM that normalizes its gates and its state, with recurrent dropout.

    Sources: Ba et al., Layer Normalization, 2016; Semeniuta et al., Recurrent Dropout without
    Memory Loss, 2016.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Callable[[Any], Any] = tf1.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self) -> Any:
        return tf1.nn.rnn_cell.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def _normalized(self, values: Any, scope: str) -> Any:
        if not self._layer_norm:
            return values
        shape, dtype = [self._num_units], values.dtype
        with tf1.variable_scope(scope):
            gain, shift = map(tf1.constant_initializer, (self._gain, self._shift))
            gamma = tf1.get_variable("gamma", shape, dtype, gain)
            beta = tf1.get_variable("beta", shape, dtype, shift)
        mean, variance = tf1.nn.moments(values, [1], keep_dims=True)
        epsilon = _EPSILONS.get(dtype.name, 1e-12)
        return tf1.nn.batch_normalization(values, mean, variance, beta, gamma, epsilon)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        inputs = tf1.concat([inputs, h], 1)
        size = [int(inputs.shape[-1]), 4 * self._num_units]
        gates = tf1.matmul(inputs, tf1.get_variable("kernel", size, inputs.dtype))
        if not self._layer_norm:
            gates = tf1.nn.bias_add(gates, tf1.get_variable("bias", size[1:], inputs.dtype))
        scopes = ("input", "transform", "forget", "output")
        pairs = zip(tf1.split(gates, 4, 1), scopes)
        i, j, f, o = (self._normalized(values, scope) for values, scope in pairs)
        g = self._activation(j)
        if isinstance(self._keep_prob, tf1.Tensor) or self._keep_prob < 1:
            g = tf1.nn.dropout(g, self._keep_prob, seed=self._seed)
        c = c * tf1.sigmoid(f + self._forget_bias) + tf1.sigmoid(i) * g
        c = self._normalized(c, "state")
        h = self._activation(c) * tf1.sigmoid(o)
        return h, tf1.nn.rnn_cell.LSTMStateTuple(c, h)
