"""A saver for checkpoints whose names have characters that TensorFlow reads as patterns."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1
from compat.checkpoint.literal_names import pattern


class LiteralSaver(tf1.train.Saver):
    """TensorFlow's saver, for checkpoints whose names contain characters such as `*` and `[`.

    It escapes these characters, since TensorFlow finds and deletes checkpoints by patterns: it
    would miss such checkpoints, or delete others.
    """

    def recover_last_checkpoints(self, checkpoint_paths: Any) -> None:
        names = {pattern(tf1.compat.as_str(path)): path for path in checkpoint_paths}
        super().recover_last_checkpoints(list(names))
        recovered = [(names[path], time) for path, time in self._last_checkpoints]
        self.set_last_checkpoints_with_time(recovered)

    def _MaybeDeleteOldCheckpoints(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        waiting = self._checkpoints_to_be_deleted
        waiting[:1] = [(pattern(path), time) for path, time in waiting[:1]]
        super()._MaybeDeleteOldCheckpoints(*args, **kwargs)
