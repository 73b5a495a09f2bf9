"""The attention decoder of `tf.nn.seq2seq`, and its affine layer."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from compat._tensorflow import tf1


def linear(
    args: Any,
    output_size: int,
    bias: bool = True,
    bias_start: float = 0.0,
    scope: Any = None,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
) -> Any:
    """Returns an affine map, `[batch, output_size]`, of one or more tensors `[batch, width]`.

    Its variables are named "weights" and "biases", as in 1.0.
    """
    args = tf1.nest.flatten(args)
    width, dtype = sum(int(arg.shape[1]) for arg in args), args[0].dtype
    with tf1.variable_scope(scope or tf1.get_variable_scope()):
        weights = tf1.get_variable("weights", [width, output_size], dtype, kernel_initializer)
        result = tf1.matmul(args[0] if len(args) == 1 else tf1.concat(args, 1), weights)
        if not bias:
            return result
        first = bias_initializer or tf1.constant_initializer(bias_start)
        return result + tf1.get_variable("biases", [output_size], dtype, first)


class Linear:
    """An affine map of tensors `[batch, width]` to `[batch, output_size]`, as from 1.4 to 1.15.

    Its variables are named "kernel" and "bias". All calls share them.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        args = tf1.nest.flatten(args)
        width, dtype = sum(int(arg.shape[1]) for arg in args), args[0].dtype
        self._kernel = tf1.get_variable("kernel", [width, output_size], dtype, kernel_initializer)
        self._bias = None
        if build_bias:
            first = bias_initializer or tf1.constant_initializer(0.0)
            with tf1.variable_scope(tf1.get_variable_scope()) as scope:
                scope.set_partitioner(None)
                self._bias = tf1.get_variable("bias", [output_size], dtype, first)

    def __call__(self, args: Any) -> Any:
        args = tf1.nest.flatten(args)
        result = tf1.matmul(args[0] if len(args) == 1 else tf1.concat(args, 1), self._kernel)
        return result if self._bias is None else tf1.nn.bias_add(result, self._bias)


def linear_of_kernel(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Any:
    """Returns an affine map like `linear`, with the variables of `Linear`, as from 1.2."""
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def outputs_of(
    cell: Callable[[Any, Any], tuple[Any, Any]],
    inputs: Sequence[Any],
    state: Any,
    loop_function: Callable[[Any, int], Any] | None,
) -> tuple[list[Any], Any]:
    """Returns the outputs over time and the last state, in the current variable scope.

    A `loop_function` computes the next input from the last output and the time.
    """
    outputs: list[Any] = []
    for time, value in enumerate(inputs):
        if loop_function is not None and outputs:
            with tf1.variable_scope("loop_function", reuse=True):
                value = loop_function(outputs[-1], time)
        if time:
            tf1.get_variable_scope().reuse_variables()
        output, state = cell(value, state)
        outputs.append(output)
    return outputs, state


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Returns the outputs of a cell that attends to `attention_states`, and its last state.

    The states are float32 `[batch, length, size]`, and the outputs have their dtype. With
    `initial_state_attention`, the first step reads the attention to the states instead of zeros.
    Source: Vinyals et al., Grammar as a Foreign Language, 2014.
    """
    output_size = output_size or cell.output_size
    size = int(attention_states.shape[2])
    with tf1.variable_scope(scope or "attention_decoder"):
        hidden = tf1.expand_dims(attention_states, 2)  # [batch, length, 1, size]
        keys, scales = [], []
        for head in range(num_heads):
            kernel = tf1.get_variable(f"AttnW_{head}", [1, 1, size, size])
            keys.append(tf1.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
            scales.append(tf1.get_variable(f"AttnV_{head}", [size]))

        def attend(state: Any, reuse: bool | None = None) -> list[Any]:
            query = tf1.concat(tf1.nest.flatten(state), 1)
            reads = []
            for head in range(num_heads):
                with tf1.variable_scope(f"Attention_{head}", reuse=reuse):
                    projected = tf1.reshape(linear(query, size), [-1, 1, 1, size])
                    score = tf1.reduce_sum(scales[head] * tf1.tanh(keys[head] + projected), [2, 3])
                    weights = tf1.reshape(tf1.nn.softmax(score), [-1, tf1.shape(hidden)[1], 1, 1])
                    reads.append(tf1.reshape(tf1.reduce_sum(weights * hidden, [1, 2]), [-1, size]))
            return reads

        zeros = tf1.zeros([tf1.shape(attention_states)[0], size], attention_states.dtype)
        zeros.set_shape([None, size])
        attended = attend(initial_state) if initial_state_attention else [zeros] * num_heads

        def step(value: Any, state: Any) -> tuple[Any, Any]:
            nonlocal attended
            merged = linear([value, *attended], int(value.shape[1]))
            output, state = cell(merged, state)
            # The call `attend(initial_state)` has created the variables before the first step.
            attended = attend(state, reuse=True if initial_state_attention else None)
            with tf1.variable_scope("AttnOutputProjection"):
                return linear([output, *attended], output_size), state

        return outputs_of(step, decoder_inputs, initial_state, loop_function)
