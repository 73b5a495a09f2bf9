"""Rows of a table that values earn: a map of value to row, with admission, expiry and reuse.

    rows = row_map.MappedRows(batch["categories"], rows=260000)     # int64 [batch, 26]
    found = rows.lookup(embeddings.table("table", rows.total, width=64))   # float32 [batch, 26, 64]
    kept = rows.remember(optimizer, step, admit_after=5, forget_after=100000)  # after the update

The map is variables as others are: int64 `keys` and `seen`, a number for each row. So they are cut
into parts over parameter servers, saved whole and restored on either runtime, by any number of
servers. A value may have one of the eight rows of its bucket, as lines of a processor's cache are
found; its row is the one whose key it is.
"""

from __future__ import annotations

from typing import Any

from compat import tf, tf1
from models.embeddings import Rows, table

WAYS = 8  # Rows in a bucket: what a value that comes last still finds one of.
# Odd numbers near 2^64 by the golden section and other irrational numbers, as int64.
_ODDS = [n - (1 << 64) for n in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)]
_COUNTS = 1 << 20  # A cell of the sketch is a period and a count below this.
_CELLS = 4  # Cells of the sketch for each row.


class MappedRows(Rows):
    """The rows of a batch whose values have rows of their own, or share their feature's.

    Values of all features have rows in the same buckets. A value that has none shares one row with
    all such values of its feature, and begins with a copy of that when it is admitted.

    Args:
      ids: int64 `[batch, features]`, any numbers.
      rows: of all features, without the shared ones; rounded up to whole buckets.
      parts: of the map's variables; None: as many as there are parameter servers.

    Attributes:
      total: number of rows, those that are shared and one that is never used among them.
      known: bool `[batch, features]`, whether the value has a row of its own.
    """

    def __init__(self, ids: Any, rows: int, parts: int | None = None) -> None:
        features = int(ids.shape[1])
        self._buckets = -(-rows // WAYS)
        self.total = self._buckets * WAYS + features + 1
        self._parts = parts
        self._keys, self._seen = (
            table(name, self._buckets, WAYS, parts=parts, dtype=tf.int64)
            for name in ("keys", "seen")
        )
        self._tables: list[Any] = []
        salt = tf.range(1, features + 1, dtype=tf.int64) * tf.constant(_ODDS[0], tf.int64)
        flat = tf.reshape(ids + salt, [-1])
        self._unique, positions, self._counts = tf.unique_with_counts(flat)
        feature = tf.reshape(tf.zeros_like(ids) + tf.range(features, dtype=tf.int64), [-1])
        feature = tf.math.unsorted_segment_max(feature, positions, tf.size(self._unique))
        self._shared = self._buckets * WAYS + feature
        self._bucket = _hash(self._unique, 0, self._buckets)
        keys = tf1.nn.embedding_lookup(self._keys, self._bucket, partition_strategy="div")
        same = tf.equal(keys, tf.expand_dims(self._unique, 1))
        self._is_known = tf.reduce_any(same, axis=1)
        self._way = tf.argmax(tf.cast(same, tf.int32), axis=1)
        own = self._bucket * WAYS + self._way
        self._find(tf.gather(tf.where(self._is_known, own, self._shared), positions), features)
        self.known = tf.reshape(tf.gather(self._is_known, positions), [-1, features])

    def lookup(self, table: Any) -> Any:
        self._tables.append(table)
        return super().lookup(table)

    def used(self) -> Any:
        """Returns the share of rows that values have, float32 scalar, counted where they are."""
        counts = []
        for part in _parts(self._seen):
            with tf.device(part.device):
                counts.append(tf.reduce_sum(tf.cast(part.read_value() > 0, tf.float32)))
        return tf.add_n(counts) / (self._buckets * WAYS)

    def remember(
        self, optimizer: Any, step: Any, admit_after: int = 1, forget_after: int = 0
    ) -> Any:
        """Returns the operation that notes what the batch has read, and admits new values.

        A value is admitted in the batch by which it was seen `admit_after` times and, where values
        are forgotten, within a period of `forget_after` updates. It takes a free row of its bucket
        or, of rows that no batch has read for longer than that, the one that was read first; else
        it waits. One value is admitted to a bucket at a time. Its row begins as that of its
        feature, and the optimizer's state of the row as that of a row that was never read.

        Args:
          optimizer: that has updated the tables.
          step: the variable that counts the updates, after this one.
          admit_after: how many times a value is seen before it has a row.
          forget_after: updates; 0: rows are kept for good.
        """
        now = step.read_value()
        places = tf.stack([self._bucket, self._way], axis=1)
        places = tf.boolean_mask(places, self._is_known)
        touched = _write(self._seen, places, tf.fill([tf.shape(places)[0]], now))
        new = (self._unique, self._bucket, self._shared)
        news = _chosen(tf.logical_not(self._is_known), *new, tf.cast(self._counts, tf.int64))
        counted: list[Any] = []
        if admit_after > 1:
            period = now // forget_after if forget_after else tf.zeros_like(now)
            often, counted = self._count(news[0], news[3], period)
            news = _chosen(often >= admit_after, *news)
        buckets, index = tf.unique(news[1])
        numbers = tf.range(tf.size(index))
        first = tf.math.unsorted_segment_min(numbers, index, tf.size(buckets))
        unique, bucket, shared = (tf.gather(part, first) for part in news[:3])
        with tf.control_dependencies(touched):
            seen = tf1.nn.embedding_lookup(self._seen, bucket, partition_strategy="div")
        oldest, way = tf.reduce_min(seen, axis=1), tf.argmin(seen, axis=1)
        free = tf.equal(oldest, 0)
        if forget_after:
            free = tf.logical_or(free, now - oldest > forget_after)
        unique, bucket, shared, way = _chosen(free, unique, bucket, shared, way)
        # The key comes last: a row that is found has its first values.
        with tf.control_dependencies(self._begun(optimizer, bucket * WAYS + way, shared)):
            places = tf.stack([bucket, way], axis=1)
            known = _write(self._keys, places, tf.identity(unique))
            known += _write(self._seen, places, tf.fill([tf.shape(places)[0]], now))
        return tf.group(*touched, *counted, *known)

    def _begun(self, optimizer: Any, rows: Any, shared: Any) -> list[Any]:
        """Gives rows, and what the optimizer keeps of them, their first values."""
        done = []
        for one in self._tables:
            first = tf1.nn.embedding_lookup(one, shared, partition_strategy="div")
            done += _write(one, tf.expand_dims(rows, 1), first)
            for name in optimizer.get_slot_names():
                slots = [optimizer.get_slot(part, name) for part in _parts(one)]
                if slots[0] is None or slots[0].shape.rank == 0:
                    continue
                blank = tf.gather(slots[-1], tf.zeros_like(rows) + int(slots[-1].shape[0]) - 1)
                done += _write(slots, tf.expand_dims(rows, 1), blank)
        return done

    def _count(self, unique: Any, counts: Any, period: Any) -> tuple[Any, list[Any]]:
        """Counts values in a sketch; returns how often each was seen, and what has to run.

        A value has two cells, which it shares with others, and was seen at most as often as the
        lower one says. A cell of a period before counts 0.

        Source: Cormode and Muthukrishnan, An improved data stream summary, 2005, with the
        conservative update of Estan and Varghese, 2002.
        """
        size = self._buckets * WAYS * _CELLS
        sketch = table("sketch", size, 1, parts=self._parts, dtype=tf.int64)
        cells = [_hash(unique, number, size) for number in (1, 2)]
        values = [tf1.nn.embedding_lookup(sketch, c, partition_strategy="div") for c in cells]
        values = [tf.maximum(value[:, 0] - period * _COUNTS, 0) for value in values]
        often = tf.minimum(tf.minimum(*values) + counts, _COUNTS - 1)
        done: list[Any] = []
        for cell, value in zip(cells, values):
            higher = tf.maximum(value, often) + period * _COUNTS
            done += _write(sketch, tf.expand_dims(cell, 1), tf.expand_dims(higher, 1))
        return often, done


def _hash(values: Any, number: int, size: int) -> Any:
    """Returns hash function `number` of int64 `[n]`, in [0, size)."""
    products = values * tf.constant(_ODDS[number], tf.int64)
    return tf.math.floormod(tf.bitwise.right_shift(products, tf.constant(20, tf.int64)), size)


def _chosen(mask: Any, *tensors: Any) -> list[Any]:
    """Returns the elements of tensors `[n]` where `mask`, bool `[n]`, is true."""
    numbers = tf.where(mask)[:, 0]
    return [tf.gather(tensor, numbers) for tensor in tensors]


def _parts(table: Any) -> list[Any]:
    """Returns the parts of what `embeddings.table` made."""
    return list(table) if hasattr(table, "__iter__") else [table]


def _write(table: Any, places: Any, values: Any) -> list[Any]:
    """Returns the operations that assign values `[n, ...]` at places, int64 `[n, 1 or 2]`.

    A part gets its own ones only.
    """
    done, first = [], 0
    parts = table if isinstance(table, list) else _parts(table)
    for part in parts:
        size = int(part.shape[0])
        here, given = places, values
        if len(parts) > 1:
            row = places[:, 0]
            mask = tf.logical_and(row >= first, row < first + size)
            here, given = _chosen(mask, places, values)
            here -= tf.constant([first] + [0] * (int(places.shape[1]) - 1), tf.int64)
        with tf.device(part.device):
            done.append(
                tf1.raw_ops.ResourceScatterNdUpdate(ref=part.handle, indices=here, updates=given)
            )
        first += size
    return [getattr(found, "op", found) for found in done]
