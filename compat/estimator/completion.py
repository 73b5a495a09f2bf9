"""Makes an evaluator exit at the end of a run, by a marker file of the chief in the model's folder.

The package's evaluator waits for `max_steps`, which a run does not reach if its data or a hook ends
it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import types
import uuid
from typing import Any, Callable

from compat._tensorflow import tf1

FILE = "estimator_complete.json"
_POLL_SECS = 1.0
_PATIENCE_SECS = 60.0  # Time for a chief to resume a run that was over when this task started.


def mark_ends(executor: Any, with_globals: Callable[..., Any]) -> None:
    """Makes the chief write a marker file at the end of a run, and the evaluator exit then.

    Args:
      executor: The class `_TrainingExecutor` of the package.
      with_globals: Returns a copy of a function, with some globals of its module replaced.
    """
    train, follow = executor._start_distributed_training, executor._start_continuous_evaluation
    evaluate_once = executor._execute_evaluator_once

    def trained(self: Any, *args: Any, **kwargs: Any) -> Any:
        path = _path(self._estimator) if self._estimator.config.is_chief else None
        if path:
            with contextlib.suppress(tf1.errors.NotFoundError):
                tf1.gfile.Remove(path)
        result = train(self, *args, **kwargs)
        if path:
            _write(path)
        return result

    def followed(self: Any) -> Any:
        end = _End(_path(self._estimator))
        listener = self._continuous_eval_listener
        self._continuous_eval_listener = _UntilTheEnd(listener, end)
        clock = types.SimpleNamespace(time=time.time, sleep=end.sleep)
        self._execute_evaluator_once = types.MethodType(
            with_globals(evaluate_once, time=clock), self
        )
        return with_globals(follow, time=clock)(self)

    executor._start_distributed_training = trained
    executor._start_continuous_evaluation = followed


def _path(estimator: Any) -> str:
    return os.path.join(str(estimator.model_dir), FILE)


def _write(path: str) -> None:
    """Writes a marker file with unique contents.

    An evaluator compares the contents, to distinguish it from the marker of an earlier run.
    """
    tf1.gfile.MakeDirs(os.path.dirname(path))
    unfinished = f"{path}.{uuid.uuid4().hex}"
    with tf1.gfile.GFile(unfinished, "w") as file:
        file.write(json.dumps({"run": uuid.uuid4().hex}) + "\n")
    tf1.gfile.Rename(unfinished, path, overwrite=True)


class _End:
    """Detects the end of the run by the chief's marker file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._earlier = self._read()
        self._began = time.monotonic()

    def _read(self) -> str | None:
        try:
            with tf1.gfile.GFile(self._path) as file:
                return str(file.read())
        except tf1.errors.OpError:
            return None

    def is_reached(self) -> bool:
        """Whether the chief is done and has written its last checkpoint."""
        end = self._read()
        if end is None:
            self._earlier = None  # The chief has resumed the run.
            return False
        return end != self._earlier or time.monotonic() - self._began > _PATIENCE_SECS

    def sleep(self, secs: float) -> None:
        """Sleeps, at most until the end."""
        until = time.monotonic() + secs
        while time.monotonic() < until and not self.is_reached():
            time.sleep(max(0.0, min(_POLL_SECS, until - time.monotonic())))


class _UntilTheEnd:
    """A `_ContinuousEvalListener` that ends with the evaluation of the last checkpoint."""

    def __init__(self, listener: Any, end: _End) -> None:
        self._listener, self._end = listener, end
        self._is_last = False

    def before_eval(self) -> Any:
        """Called before an evaluation; returns False if the evaluator shall exit."""
        self._is_last = self._end.is_reached()
        return self._listener.before_eval()

    def after_eval(self, result: Any) -> Any:
        """Called after each evaluation, or attempt; returns False if the evaluator shall exit."""
        return self._listener.after_eval(result) and not self._is_last
