"""Attention to the outputs of an encoder, for the cells of `AttentionWrapper`."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from compat._tensorflow import tf1
from compat.contrib.rnn import cells

nest = tf1.nest


class AttentionMechanism:
    """Base class of attention; subclasses have `values` and the methods of `BahdanauAttention`."""


def hardmax(logits: Any, name: str | None = None) -> Any:
    """Returns 1 for the largest logit of each row, else 0."""
    logits = tf1.convert_to_tensor(logits)
    depth = logits.shape.as_list()[-1] or tf1.shape(logits)[-1]
    return tf1.one_hot(tf1.argmax(logits, -1), depth, dtype=logits.dtype)


def _masked(memory: Any, lengths: Any, check: bool) -> Any:
    """Returns the memory `[batch, time, ...]` with zeros beyond the lengths."""

    def mask(each: Any) -> Any:
        each = tf1.convert_to_tensor(each, name="memory")
        if check and not each.shape[2:].is_fully_defined():
            raise ValueError(
                f"Expected memory {each.name} to have fully defined inner dims, but saw shape: "
                f"{each.shape}"
            )
        if lengths is None:
            return each
        kept = tf1.sequence_mask(lengths, tf1.shape(each)[1], each.dtype)
        ones = tf1.ones([tf1.rank(each) - 2], tf1.int32)
        return each * tf1.reshape(kept, tf1.concat([tf1.shape(kept), ones], 0))

    return nest.map_structure(mask, memory)


class _BaseAttentionMechanism(AttentionMechanism):
    """Attention to a memory `[batch, time, ...]`, with a layer for the memory and one for queries.

    `probability_fn` receives the score and the state, both float32 `[batch, time]`.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Any, Any], Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = memory_layer.dtype
        least = -np.inf if score_mask_value is None else score_mask_value

        def probabilities(score: Any, state: Any) -> Any:
            if memory_sequence_length is None:
                return probability_fn(score, state)
            positive = tf1.assert_positive(
                memory_sequence_length,
                message="All values in memory_sequence_length must be greater than zero.",
            )
            with tf1.control_dependencies([positive]):
                kept = tf1.sequence_mask(memory_sequence_length, tf1.shape(score)[1])
            return probability_fn(tf1.where(kept, score, least * tf1.ones_like(score)), state)

        self._probability_fn = probabilities
        with tf1.name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._values = _masked(memory, memory_sequence_length, check_inner_dims_defined)
            self._keys = memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            batch, time = self._keys.shape.as_list()[:2]
            self._batch_size = batch or tf1.shape(self._keys)[0]
            self._alignments_size = time or tf1.shape(self._keys)[1]

    memory_layer = property(lambda self: self._memory_layer)
    query_layer = property(lambda self: self._query_layer)
    values = property(lambda self: self._values)
    keys = property(lambda self: self._keys)
    batch_size = property(lambda self: self._batch_size)
    alignments_size = property(lambda self: self._alignments_size)
    state_size = property(lambda self: self._alignments_size)

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the alignments before the first step, zeros `[batch, time]`."""
        return cells._zero_state_tensors(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the state before the first step."""
        return self.initial_alignments(batch_size, dtype)


class _Scored(_BaseAttentionMechanism):
    """Attention whose scores have their own variables."""

    _scope = ""
    _score_bias_init: Any = None

    def __init__(
        self,
        num_units: int,
        has_query_layer: bool,
        memory: Any,
        memory_sequence_length: Any,
        probability_fn: Any,
        score_mask_value: Any,
        dtype: Any,
        custom_key_value_fn: Any,
        name: str,
    ) -> None:
        self._num_units, self._name = num_units, name
        self._function = probability_fn or tf1.nn.softmax

        def dense(name: str) -> Any:
            return tf1.layers.Dense(
                num_units, name=name, use_bias=False, dtype=dtype or tf1.float32
            )

        super().__init__(
            dense("query_layer") if has_query_layer else None,
            memory,
            self._probabilities,
            memory_sequence_length,
            dense("memory_layer"),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments `[batch, time]`, and the next state."""
        with tf1.variable_scope(None, self._scope, [query]):
            score = self._score(query)
            if self._score_bias_init is not None:
                score += tf1.get_variable(
                    "attention_score_bias", dtype=query.dtype, initializer=self._score_bias_init
                )
        alignments = self._probability_fn(score, state)
        return alignments, alignments

    def _probabilities(self, score: Any, state: Any) -> Any:
        return self._function(score)

    def _score(self, query: Any) -> Any:
        raise NotImplementedError


class BahdanauAttention(_Scored):
    """Attention by a layer of `num_units` tanh units.

    Source: Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate,
    2015; normalized as by Salimans and Kingma, Weight Normalization, 2016.
    """

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        self._normalize = normalize
        options = (memory, memory_sequence_length, probability_fn, score_mask_value, dtype)
        super().__init__(num_units, True, *options, custom_key_value_fn, name)

    def _score(self, query: Any) -> Any:
        units, dtype = self._num_units, query.dtype
        query = tf1.expand_dims(self.query_layer(query) if self.query_layer else query, 1)
        v = tf1.get_variable("attention_v", [units], dtype)
        if not self._normalize:
            return tf1.reduce_sum(v * tf1.tanh(self._keys + query), [2])
        first = tf1.constant_initializer((1.0 / units) ** 0.5)
        g = tf1.get_variable("attention_g", (), dtype, first)
        b = tf1.get_variable("attention_b", [units], dtype, tf1.zeros_initializer())
        v = g * v * tf1.rsqrt(tf1.reduce_sum(tf1.square(v)))
        return tf1.reduce_sum(v * tf1.tanh(self._keys + query + b), [2])


class LuongAttention(_Scored):
    """Attention by the product of the query and the keys, which have the same size.

    Source: Luong et al., Effective Approaches to Attention-based Neural Machine Translation, 2015.
    """

    _scope = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        self._scale = scale
        options = (memory, memory_sequence_length, probability_fn, score_mask_value, dtype)
        super().__init__(num_units, False, *options, custom_key_value_fn, name)

    def _score(self, query: Any) -> Any:
        keys = self._keys
        if query.shape[-1] != keys.shape[-1]:
            raise ValueError(
                "Incompatible or unknown inner dimensions between query and keys.  Query "
                f"({query}) has units: {query.shape[-1]}.  Keys ({keys}) have units: "
                f"{keys.shape[-1]}.  Perhaps you need to set num_units to the keys' dimension "
                f"({keys.shape[-1]})?"
            )
        score = tf1.squeeze(tf1.matmul(tf1.expand_dims(query, 1), keys, transpose_b=True), [1])
        if not self._scale:
            return score
        return score * tf1.get_variable("attention_g", (), query.dtype, tf1.ones_initializer())
