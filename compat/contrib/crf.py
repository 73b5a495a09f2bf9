"""`tf.contrib.crf`: linear-chain conditional random fields (Lafferty et al. 2001).

Shapes: inputs and potentials [batch, time, tags], tag_indices [batch, time], sequence_lengths
[batch], transition_params [tags, tags].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._tensorflow import tf1


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """Returns log-likelihoods [batch], and the transitions, by default a new variable."""
    if transition_params is None:
        tags = inputs.shape.as_list()[2]
        transition_params = tf1.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """Returns the unnormalized scores [batch] of sequences of tags."""
    binary = crf_binary_score(tag_indices, sequence_lengths, transition_params)
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + binary


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """Returns the total scores [batch] of all tags that the bitmap [batch, time, tags] allows."""
    allowed = tf1.where(tag_bitmap, inputs, tf1.fill(tf1.shape(inputs), -np.inf))
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """Returns the sums [batch] of the potentials of the tags."""
    chosen = tf1.batch_gather(inputs, tag_indices[:, :, None])[:, :, 0]
    return tf1.reduce_sum(chosen * _mask(sequence_lengths, tag_indices), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Returns the sums [batch] of the potentials of the transitions between the tags."""
    pairs = tf1.stack([tag_indices[:, :-1], tag_indices[:, 1:]], axis=2)
    steps = tf1.gather_nd(transition_params, pairs)
    return tf1.reduce_sum(steps * _mask(sequence_lengths, tag_indices)[:, 1:], 1)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Returns log-normalizers [batch], by the forward algorithm; 0 for an empty sequence."""

    def forward(alphas: Any, step: Any) -> Any:
        potentials, alive = step
        paths = alphas[:, :, None] + transition_params[None]
        return tf1.where(alive, potentials + tf1.reduce_logsumexp(paths, 1), alphas)

    norm = tf1.reduce_logsumexp(_scan(forward, inputs, sequence_lengths, inputs[:, 0])[-1], 1)
    return tf1.where(sequence_lengths > 0, norm, tf1.zeros_like(norm))


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """Returns the best tags [batch, time], 0 after the end, int32; and their scores [batch]."""
    tags = tf1.shape(potentials)[2]
    stay = tf1.zeros_like(potentials[:, 0], tf1.int32) + tf1.range(tags)

    def forward(before: tuple[Any, Any], step: Any) -> tuple[Any, Any]:
        scores, (now, alive) = before[0], step
        paths = scores[:, :, None] + transition_params[None]
        best = tf1.argmax(paths, 1, output_type=tf1.int32)
        scores = tf1.where(alive, now + tf1.reduce_max(paths, 1), scores)
        return scores, tf1.where(alive, best, stay)

    start = (potentials[:, 0], stay)
    scores, origins = _scan(forward, potentials, sequence_length, start)
    last = tf1.argmax(scores[-1], 1, output_type=tf1.int32)

    def backward(tag: Any, origin: Any) -> Any:
        return tf1.batch_gather(origin, tag[:, None])[:, 0]

    path = tf1.scan(backward, origins, last, reverse=True)
    path = tf1.transpose(tf1.concat([path[1:], last[None]], axis=0))
    length = tf1.maximum(sequence_length, 1)
    return path * _mask(length, path, tf1.int32), tf1.reduce_max(scores[-1], 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """Returns the best tags of one sequence, and their score; `score` is an array [time, tags]."""
    best, origins = score[0], []
    for potentials in score[1:]:
        paths = best[:, None] + transition_params
        origins.append(paths.argmax(0))
        best = potentials + paths.max(0)
    path = [int(np.argmax(best))]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return path[::-1], best.max()


def _scan(step: Any, inputs: Any, lengths: Any, start: Any) -> Any:
    """Returns states [time, batch, ...] from `start` on; constant after the end of a sequence."""
    time = tf1.shape(inputs)[1]
    alive = tf1.sequence_mask(lengths, time) & (tf1.range(time) > 0)
    return tf1.scan(step, (tf1.transpose(inputs, [1, 0, 2]), tf1.transpose(alive)), start)


def _mask(lengths: Any, like: Any, dtype: Any = None) -> Any:
    return tf1.sequence_mask(lengths, tf1.shape(like)[1], dtype=dtype or tf1.float32)
