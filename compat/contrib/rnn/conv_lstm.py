"""`tf.contrib.rnn.ConvLSTMCell`: an LSTM with convolutions in place of matrix products."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf, tf1
from compat.contrib.rnn import cells

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


class ConvLSTMCell(cells.RNNCell):
    """An LSTM over sequences of images, series, or volumes.

    Source: Shi et al., Convolutional LSTM network, 2015.

    Args:
      conv_ndims: 1, 2 or 3.
      input_shape: Shape of an input, channels last, without the batch.
      output_channels: Number of channels of the state.
      kernel_shape: Size of the kernel in each dimension.
      use_bias: Whether the convolutions have biases.
      skip_connection: Whether the input is appended to the output.
      forget_bias: Value that is added to the forget gate.
      initializers: Ignored, as in TensorFlow 1.15.
      name: Name of the layer.

    Raises:
      ValueError: `input_shape` has another number of dimensions.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._channels, self._kernel_shape = output_channels, list(kernel_shape)
        self._use_bias, self._forget_bias = use_bias, forget_bias
        self._skips = skip_connection
        place, letters = list(input_shape[:-1]), _LETTERS[conv_ndims]
        self._format = f"N{letters}C"
        state = tf.TensorShape([*place, output_channels])
        self._state_size = tf1.nn.rnn_cell.LSTMStateTuple(state, state)
        channels = output_channels + (input_shape[-1] if skip_connection else 0)
        self._output_size = tf.TensorShape([*place, channels])

    state_size = property(lambda self: self._state_size)
    output_size = property(lambda self: self._output_size)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Returns the output, and the next state, which contains the output."""
        cell, hidden = state
        values = tf1.concat([inputs, hidden], axis=-1)
        channels = 4 * self._channels
        shape = [*self._kernel_shape, int(values.shape[-1]), channels]
        kernel = tf1.get_variable("kernel", shape, values.dtype)
        gates = tf1.nn.convolution(values, kernel, padding="SAME", data_format=self._format)
        if self._use_bias:
            zeros = tf1.constant_initializer(0.0)
            gates += tf1.get_variable("biases", [channels], values.dtype, zeros)
        enters, new, stays, leaves = tf1.split(gates, 4, axis=-1)
        cell = tf1.sigmoid(stays + self._forget_bias) * cell + tf1.sigmoid(enters) * tf1.tanh(new)
        output = tf1.tanh(cell) * tf1.sigmoid(leaves)
        if self._skips:
            output = tf1.concat([output, inputs], axis=-1)
        return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """See `ConvLSTMCell`."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **options: Any) -> None:
        super().__init__(1, name=name, **options)


class Conv2DLSTMCell(ConvLSTMCell):
    """See `ConvLSTMCell`."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **options: Any) -> None:
        super().__init__(2, name=name, **options)


class Conv3DLSTMCell(ConvLSTMCell):
    """See `ConvLSTMCell`."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **options: Any) -> None:
        super().__init__(3, name=name, **options)
