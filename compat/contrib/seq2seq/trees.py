"""Repeats rows for the beams of a search, and collects the sequences of the final beams."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1

nest = tf1.nest


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Returns tensors `[batch, ...]` with each row repeated, `[batch * multiplier, ...]`."""

    def tile(value: Any) -> Any:
        value = tf1.convert_to_tensor(value)
        if not value.shape.ndims:
            raise ValueError("t must have statically known rank")
        shape, rows = tf1.shape(value), value.shape.as_list()[0]
        tiling = [1, multiplier] + [1] * (value.shape.ndims - 1)
        tiled = tf1.tile(tf1.expand_dims(value, 1), tiling)
        tiled = tf1.reshape(tiled, tf1.concat([[shape[0] * multiplier], shape[1:]], 0))
        rows = None if rows is None else rows * multiplier
        tiled.set_shape(tf1.TensorShape([rows]).concatenate(value.shape[1:]))
        return tiled

    with tf1.name_scope(name, "tile_batch", [*nest.flatten(t), multiplier]):
        return nest.map_structure(tile, t)


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: Any = None
) -> Any:
    """Returns the symbols of each beam and its ancestors, int32 `[time, batch, beam]`.

    Symbols after the first `end_token`, or beyond the length of the sequence, are `end_token`.
    """
    with tf1.name_scope(name, "GatherTree"):
        time, beams = tf1.shape(step_ids)[0], tf1.shape(step_ids)[2]
        valid = tf1.range(time)[:, None] < max_sequence_lengths[None, :]

        def back(last: tuple[Any, Any], step: tuple[Any, Any, Any]) -> tuple[Any, Any]:
            beam, _ = last
            ids, parents, is_valid = step
            is_valid = tf1.tile(is_valid[:, None], [1, beams])
            symbols = tf1.gather(ids, beam, batch_dims=1)
            parents = tf1.gather(parents, beam, batch_dims=1)
            ends = tf1.fill(tf1.shape(symbols), end_token)
            return tf1.where(is_valid, parents, beam), tf1.where(is_valid, symbols, ends)

        first = tf1.zeros_like(step_ids[0]) + tf1.range(beams)
        start = (first, tf1.zeros_like(first))
        _, ids = tf1.scan(back, (step_ids, parent_ids, valid), start, reverse=True)
        ended = tf1.cumsum(tf1.cast(tf1.equal(ids, end_token), tf1.int32), 0, exclusive=True)
        result = tf1.where(ended > 0, tf1.fill(tf1.shape(ids), end_token), ids)
        result.set_shape(step_ids.shape)
        return result


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Any:
    """Reorders the values of each step, so that each final beam has those of its ancestors.

    The argument `t` and the result are `[time, batch * beam, ...]`.
    """
    shape = tf1.shape(parent_ids)
    time, batch, beams = shape[0], shape[1], shape[2]
    positions = tf1.zeros_like(parent_ids) + tf1.range(beams)
    longest = tf1.cast(tf1.reduce_max(sequence_length, 1), tf1.int32)
    beam_ids = gather_tree(positions, parent_ids, longest, beams + 1)
    is_inside = tf1.transpose(tf1.sequence_mask(sequence_length, time), [2, 0, 1])
    beam_ids = tf1.where(is_inside, beam_ids, positions)
    rows = tf1.reshape(t, [time, batch, beams, -1])
    return tf1.reshape(tf1.gather(rows, beam_ids, batch_dims=2), tf1.shape(t))
