"""The order in which training reads its examples."""

from __future__ import annotations

import numpy as np

from compat.errors import UserError


class Batches:
    """An endless stream of index batches: every epoch is a new permutation of the examples.

    It follows `DataSet.next_batch` in TensorFlow's tutorials since 1.1, and yields the same stream
    for the same seed: each epoch shuffles the order of the one before, and examples at the end of
    an epoch that do not fill a batch are joined with the first ones of the next epoch, so none is
    left out. (Before 1.1 the first epoch was in the order of the files, and the rest was dropped.)

    Attributes:
      num_examples: The number of examples in an epoch.
      batch_size: The number of examples in a batch.
      batches_per_epoch: Full batches in an epoch, `num_examples // batch_size`.
    """

    def __init__(self, num_examples: int, batch_size: int, seed: int, trainer: int = 0) -> None:
        """Starts the stream.

        Args:
          num_examples: The number of examples, at least `batch_size`.
          batch_size: The number of examples in a batch, at least 1.
          seed: Seed of the shuffling, 0 to 2**32 - 1; the stream is the same on all numpy releases.
          trainer: Index of the process. Each process has its own stream, which differs from the
            streams of other seeds as well.

        Raises:
          UserError: A batch is empty or larger than the data set, or the seed is out of range.
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
        # Start at the end of an epoch, so that the first epoch is shuffled, too.
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
        """Skips `k` batches; takes the time of one shuffle per epoch.

        Raises:
          UserError: `k` is negative.
        """
        position = self._position + self._count(k)
        while position > self.num_examples:
            position -= self.num_examples
            self._begin_epoch()
        self._position = position

    def _begin_epoch(self) -> None:
        # In place: this equals `order = order[permutation]`, which the tutorials use.
        self._random.shuffle(self._order)
        self._position = 0

    def _count(self, batches: int) -> int:
        if batches < 0:
            raise UserError(f"{batches} batches: expected 0 or more, as the stream has no way back")
        return batches * self.batch_size
