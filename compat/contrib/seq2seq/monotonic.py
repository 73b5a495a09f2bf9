"""Attention that never moves back: `BahdanauMonotonicAttention` and `LuongMonotonicAttention`."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._tensorflow import tf1
from compat.contrib.seq2seq.attention import BahdanauAttention, LuongAttention


def safe_cumprod(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the cumulative product of positive values, by the sum of their logarithms."""
    values = tf1.convert_to_tensor(values)
    tiny = np.finfo(values.dtype.as_numpy_dtype).tiny
    return tf1.exp(tf1.cumsum(tf1.log(tf1.clip_by_value(values, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """Returns attention that never moves back, float32 `[batch, time]`.

    Source: Raffel et al., Online and Linear-Time Attention by Enforcing Monotonic Alignments, 2017.
    """
    choose = tf1.convert_to_tensor(p_choose_i)
    previous = tf1.convert_to_tensor(previous_attention)
    if mode == "hard":
        choose *= tf1.cumsum(previous, axis=1)
        return choose * tf1.cumprod(1 - choose, axis=1, exclusive=True)
    if mode == "parallel":
        rest = safe_cumprod(1 - choose, axis=1, exclusive=True)
        return choose * rest * tf1.cumsum(previous / tf1.clip_by_value(rest, 1e-10, 1.0), axis=1)
    if mode != "recursive":
        raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")
    size = choose.shape.as_list()[0] or tf1.shape(choose)[0]
    rest = tf1.concat([tf1.ones((size, 1)), 1 - choose[:, :-1]], 1)
    return choose * tf1.transpose(
        tf1.scan(
            lambda total, each: tf1.reshape(each[0] * total + each[1], (size,)),
            [tf1.transpose(rest), tf1.transpose(previous)],
            tf1.zeros((size,)),
        )
    )


def monotonic_probability_fn(
    score: Any, previous_alignments: Any, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Any:
    """Returns monotonic attention, by the sigmoid of scores after noise is added."""
    if sigmoid_noise > 0:
        score += sigmoid_noise * tf1.random_normal(tf1.shape(score), dtype=score.dtype, seed=seed)
    is_hard = mode == "hard"
    choose = tf1.cast(score > 0, score.dtype) if is_hard else tf1.sigmoid(score)
    return monotonic_attention(choose, previous_alignments, mode)


class _Monotonic:
    """Attention that starts at the first position and never moves back."""

    def _begin(self, sigmoid_noise: float, seed: int | None, bias: float, mode: str) -> None:
        self._options: dict[str, Any] = {"sigmoid_noise": sigmoid_noise, "mode": mode, "seed": seed}
        self._score_bias_init = bias

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the alignments before the first step, `[batch, time]`."""
        places = self.alignments_size  # type: ignore[attr-defined]
        return tf1.one_hot(tf1.zeros((batch_size,), tf1.int32), places, dtype=dtype)

    def _probabilities(self, score: Any, state: Any) -> Any:
        return monotonic_probability_fn(score, state, **self._options)


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """`BahdanauAttention` that never moves back."""

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        self._begin(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)
        options = (None, score_mask_value, dtype, None, name)
        super().__init__(num_units, memory, memory_sequence_length, normalize, *options)


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """`LuongAttention` that never moves back."""

    _scope = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        self._begin(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)
        options = (None, score_mask_value, dtype, None, name)
        super().__init__(num_units, memory, memory_sequence_length, scale, *options)
