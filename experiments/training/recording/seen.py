"""Records how much data each worker had used at each checkpoint, in `seen.json` of the log folder.

A run that resumes skips these data. An entry is counted before its checkpoint is written, so a
batch may be used again, and none is left out. Batches and examples, by step and worker:

    {"30": {"worker 0": [10, 1000], "worker 1": [20, 2000]}}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

from compat.checkpoint.io import CheckpointIO
from compat.tracking.files import write_atomically
from experiments.evaluation.best_checkpoint import step_of
from experiments.training.recording.tally import Seen

FILE = "seen.json"
_BEYOND = 1 << 53


def write(logdir: str, checkpoint: str, seen: Seen) -> None:
    """Adds an entry for a checkpoint; removes the entries of checkpoints that were deleted."""
    kept = {str(step_of(prefix)) for prefix in CheckpointIO(logdir).history()}
    entries = {step: found for step, found in _entries(logdir).items() if step in kept}
    entries[str(step_of(checkpoint))] = {name: list(both) for name, both in seen.items()}
    write_atomically(str(Path(logdir, FILE)), json.dumps(entries) + "\n")


def read(logdir: str, step: int, workers: Sequence[str]) -> Seen | None:
    """Returns how much data these workers had used at a checkpoint; None if it is not known.

    It is not known if the run had other workers then, since these had other shards of the data.
    """
    known = [int(found) for found in _entries(logdir) if found.isdigit() and int(found) <= step]
    if not known:
        return None
    try:
        entry = _entries(logdir)[str(max(known))]
        seen = {str(name): (int(batches), int(n)) for name, (batches, n) in entry.items()}
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        return None
    fits = set(seen) - {""} <= set(workers)
    return seen if fits and all(0 <= n < _BEYOND for both in seen.values() for n in both) else None


def _entries(logdir: str) -> dict[str, Any]:
    try:
        found = json.loads(Path(logdir, FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}  # `write` replaces a broken file.
    return found if isinstance(found, dict) else {}
