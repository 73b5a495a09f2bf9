"""Stacked bidirectional RNNs: `tf.contrib.rnn.stack_bidirectional_*`."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1


def _stack(
    layer: Callable[..., Any],
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
    **options: Any,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the last layer's outputs, and the states of all layers in both directions."""
    forwards, backwards = [], []
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with tf1.variable_scope(f"cell_{i}"):
                inputs, state_fw, state_bw = layer(
                    forward,
                    backward,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                    **options,
                )
            forwards.append(state_fw)
            backwards.append(state_bw)
    return inputs, tuple(forwards), tuple(backwards)


def _dynamic_layer(*args: Any, **options: Any) -> tuple[Any, Any, Any]:
    outputs, states = tf1.nn.bidirectional_dynamic_rnn(*args, **options)
    return (tf1.concat(outputs, 2), *states)


dynamic = functools.partial(_stack, _dynamic_layer)  # Outputs are `[batch, time, width]`.
static = functools.partial(_stack, tf1.nn.static_bidirectional_rnn)  # Outputs are a list over time.
