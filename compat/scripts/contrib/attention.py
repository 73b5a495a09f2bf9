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
    **initializers: Any,
) -> Any:
    """Returns an affine map of the concatenated arguments, `[batch, output_size]`.

    Args:
      args: a tensor or a list of tensors `[batch, width]`.
      output_size: the width of the result.
      bias: whether to add a bias.
      bias_start: initial value of the bias.
      scope: scope of the variables, which are named "weights" and "biases", as in 1.0.
      **initializers: `kernel_initializer` and `bias_initializer`.
    """
    args = list(args) if isinstance(args, (list, tuple)) else [args]
    width = sum(int(arg.shape[1]) for arg in args)
    with tf1.variable_scope(scope or tf1.get_variable_scope()):
        weights = tf1.get_variable(
            "weights",
            [width, output_size],
            dtype=args[0].dtype,
            initializer=initializers.get("kernel_initializer"),
        )
        result = tf1.matmul(args[0] if len(args) == 1 else tf1.concat(args, 1), weights)
        if not bias:
            return result
        first = initializers.get("bias_initializer") or tf1.constant_initializer(bias_start)
        return result + tf1.get_variable(
            "biases", [output_size], dtype=args[0].dtype, initializer=first
        )


def outputs_of(
    cell: Any,
    inputs: Sequence[Any],
    state: Any,
    loop_function: Callable[[Any, int], Any] | None,
    step: Callable[[Any, Any], tuple[Any, Any]] | None = None,
) -> tuple[list[Any], Any]:
    """Returns the outputs over time and the last state, in the current variable scope.

    Args:
      cell: an RNN cell.
      inputs: float32 `[batch, width]` for each time step.
      state: initial state.
      loop_function: computes the next input from the last output and the time, if not None.
      step: replaces the call of the cell at each time step.
    """
    outputs: list[Any] = []
    for time, value in enumerate(inputs):
        if loop_function is not None and outputs:
            with tf1.variable_scope("loop_function", reuse=True):
                value = loop_function(outputs[-1], time)
        if time:
            tf1.get_variable_scope().reuse_variables()
        output, state = (step or cell)(value, state)
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

    Source: Vinyals et al., Grammar as a Foreign Language, 2014.

    Args:
      decoder_inputs: float32 `[batch, width]` for each time step.
      initial_state: initial state of the cell.
      attention_states: float32 `[batch, length, size]`.
      cell: an RNN cell.
      output_size: width of the outputs; None for the cell's.
      num_heads: number of attention heads.
      loop_function: computes the next input from the last output and the time; None to use
        `decoder_inputs`.
      dtype: ignored; outputs have the dtype of the states.
      scope: scope of the variables.
      initial_state_attention: whether to attend before the first step, instead of to zeros.
    """
    del dtype
    output_size = output_size or cell.output_size
    size = int(attention_states.shape[2])
    with tf1.variable_scope(scope or "attention_decoder"):
        hidden = tf1.expand_dims(attention_states, 2)  # [batch, length, 1, size]
        keys, scales = [], []
        for head in range(num_heads):
            kernel = tf1.get_variable(f"AttnW_{head}", [1, 1, size, size])
            keys.append(tf1.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
            scales.append(tf1.get_variable(f"AttnV_{head}", [size]))

        def attend(state: Any) -> list[Any]:
            query = tf1.concat(tf1.nest.flatten(state), 1)
            found = []
            for head in range(num_heads):
                with tf1.variable_scope(f"Attention_{head}"):
                    projected = tf1.reshape(linear(query, size), [-1, 1, 1, size])
                    score = tf1.reduce_sum(scales[head] * tf1.tanh(keys[head] + projected), [2, 3])
                    weights = tf1.reshape(tf1.nn.softmax(score), [-1, tf1.shape(hidden)[1], 1, 1])
                    found.append(tf1.reshape(tf1.reduce_sum(weights * hidden, [1, 2]), [-1, size]))
            return found

        zeros = tf1.zeros([tf1.shape(attention_states)[0], size], attention_states.dtype)
        zeros.set_shape([None, size])
        seen = attend(initial_state) if initial_state_attention else [zeros] * num_heads

        def step(value: Any, state: Any) -> tuple[Any, Any]:
            nonlocal seen
            merged = linear([value, *seen], int(value.shape[1]))
            output, state = cell(merged, state)
            if initial_state_attention and not steps:
                with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
                    seen = attend(state)
            else:
                seen = attend(state)
            steps.append(state)
            with tf1.variable_scope("AttnOutputProjection"):
                return linear([output, *seen], output_size), state

        steps: list[Any] = []
        return outputs_of(cell, decoder_inputs, initial_state, loop_function, step)
