"""The order in which training sees its examples."""

from __future__ import annotations

import numpy as np

from compat.errors import UserError


class Batches:
    """An endless stream of index batches: every epoch is a new permutation of the examples.

    The law, and for a seed the very stream, of `DataSet.next_batch` in TensorFlow's tutorials
    since 1.0: each epoch shuffles the order of the one before, and examples at the end of an epoch
    that do not fill a batch are joined with the first of the next one, so none is left out.
    (TensorFlow 0.x began in the order of the files and dropped them.)

    Attributes:
      num_examples: how many examples an epoch has.
      batch_size: how many examples a batch has.
      batches_per_epoch: full batches in an epoch, `num_examples // batch_size`.
    """

    def __init__(self, num_examples: int, batch_size: int, seed: int, trainer: int = 0) -> None:
        """Starts the stream.

        Args:
          num_examples: how many examples there are, at least `batch_size`.
          batch_size: how many a batch takes, at least 1.
          seed: of the shuffling, 0 to 2**32 - 1; the stream is the same on all numpy releases.
          trainer: index of the process that draws. Each has a stream of its own, which is no other
            seed's stream either.

        Raises:
          UserError: a batch is empty or larger than the data set, or the seed is out of range.
        """
        if not 1 <= batch_size <= num_examples:
            raise UserError(
                f"batch size {batch_size}: expected 1 to {num_examples}, the number of training "
                "examples; give another --batch_size"
            )
        if not 0 <= seed < 2**32:
            raise UserError(f"seed {seed}: expected 0 to {2**32 - 1}; give another --seed")
        self.num_examples = num_examples
        self.batch_size = batch_size
        self.batches_per_epoch = num_examples // batch_size
        self._random = np.random.RandomState([seed, trainer] if trainer else seed)
        self._order = np.arange(num_examples, dtype=np.int32)
        # As if an epoch had just ended: the first one is shuffled too.
        self._position = num_examples

    def next(self, n: int) -> np.ndarray:
        """Returns the next `n` batches, as int32 `[n, batch_size]` indices of examples.

        Raises:
          UserError: `n` is negative.
        """
        indices = np.empty(self._count(n), np.int32)
        filled = 0
        while filled < len(indices):
            if self._position == self.num_examples:
                self._begin_epoch()
            part = self._order[self._position : self._position + len(indices) - filled]
            indices[filled : filled + len(part)] = part
            filled += len(part)
            self._position += len(part)
        return indices.reshape(n, self.batch_size)

    def skip(self, k: int) -> None:
        """Goes on by `k` batches, as if they had been drawn; costs one shuffle an epoch.

        Raises:
          UserError: `k` is negative.
        """
        position = self._position + self._count(k)
        while position > self.num_examples:
            position -= self.num_examples
            self._begin_epoch()
        self._position = position

    def _begin_epoch(self) -> None:
        # In place: the same as `order = order[permutation]`, which is what the tutorials did.
        self._random.shuffle(self._order)
        self._position = 0

    def _count(self, batches: int) -> int:
        if batches < 0:
            raise UserError(f"{batches} batches: expected 0 or more, as the stream has no way back")
        return batches * self.batch_size
