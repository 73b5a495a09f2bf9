"""The best checkpoint of a training, in a folder of its own, where it stays.

The chief keeps the last few checkpoints only. Whenever a process is killed, the folder has a whole
one, the earlier or the new, and `tf.compat.v1.train.latest_checkpoint` finds it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from experiments.metrics.spool import write_whole

FOLDER = "best"
# Also what a process that was killed had begun.
_OF_A_CHECKPOINT = re.compile(r"\.(index|data-\d{5}-of-\d{5})(\.tmp)?$")
_STATE = "checkpoint"  # Names the checkpoint, as TensorFlow writes and reads it.


def keep(prefix: str, folder: str) -> str:
    """Copies a checkpoint, which then takes the place of the one in the folder.

    Args:
      prefix: of the checkpoint's files.
      folder: made if there is none.

    Returns:
      The prefix of the copy.

    Raises:
      OSError: a file has gone, or cannot be written; the earlier checkpoint stays.
    """
    name = Path(prefix).name
    # The index last, as TensorFlow does.
    files = sorted({*Path(prefix).parent.glob(f"{name}.data-*"), Path(f"{prefix}.index")})
    if len(files) < 2:
        raise FileNotFoundError(2, "its files have gone", prefix)
    os.makedirs(folder, exist_ok=True)
    for file in files:
        target = os.path.join(folder, file.name)
        shutil.copyfile(str(file), target + ".tmp")
        os.replace(target + ".tmp", target)
    # By its name alone: the folder may be moved.
    state = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    write_whole(os.path.join(folder, _STATE), state)
    kept = {file.name for file in files}
    for old in Path(folder).iterdir():
        if _OF_A_CHECKPOINT.search(old.name) and old.name not in kept:
            with contextlib.suppress(OSError):
                old.unlink()
    return os.path.join(folder, name)
