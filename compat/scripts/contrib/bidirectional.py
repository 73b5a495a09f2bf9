"""Stacked bidirectional RNNs: `tf.contrib.rnn.stack_bidirectional_*`."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf1


def dynamic(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the last layer's outputs `[batch, time, width]`, and the states of all layers."""
    forwards, backwards = [], []
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with tf1.variable_scope(f"cell_{i}"):
                outputs, states = tf1.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                    **kwargs,
                )
            inputs = tf1.concat(outputs, 2)
            forwards.append(states[0])
            backwards.append(states[1])
    return inputs, tuple(forwards), tuple(backwards)


def static(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the last layer's outputs, a list over time, and the states of all layers."""
    forwards, backwards = [], []
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with tf1.variable_scope(f"cell_{i}"):
                inputs, state_fw, state_bw = tf1.nn.static_bidirectional_rnn(
                    forward,
                    backward,
                    inputs,
                    initial_states_fw[i] if initial_states_fw else None,
                    initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                )
            forwards.append(state_fw)
            backwards.append(state_bw)
    return inputs, tuple(forwards), tuple(backwards)
