"""Checkpoints of the position up to which a program has read its data."""

from __future__ import annotations

import os
import types
from typing import Any

from compat._tensorflow import tf1

_ITERATORS = "iterators"  # TensorFlow's collection of the iterators of a graph.


class CheckpointInputPipelineHook(tf1.train.SessionRunHook):
    """`tf.data.experimental.CheckpointInputPipelineHook`, which TensorFlow removed.

    A hook may be passed to several calls of `train`: each call resumes where the one before ended.
    With TensorFlow's hook each call would start from the beginning.
    """

    def __init__(self, estimator: Any, external_state_policy: str | None = None) -> None:
        config = estimator.config
        task = f"_{config.task_type}_{config.task_id}" if config.num_worker_replicas > 1 else ""
        self._folder, self._name = os.fspath(estimator.model_dir), f"input{task}"
        # TensorFlow 1.15 has no such attribute.
        self._policy = [] if external_state_policy is None else [external_state_policy]
        self._every = {
            "every_secs": config.save_checkpoints_secs,
            "every_steps": config.save_checkpoints_steps,
        }

    def begin(self) -> None:
        """Creates the saver of the iterators, once the graph has them all."""
        self._saver = tf1.train.Saver(
            [
                tf1.data.experimental.make_saveable_from_iterator(
                    types.SimpleNamespace(_iterator_resource=iterator), *self._policy
                )
                for iterator in tf1.get_collection(_ITERATORS)
            ],
            sharded=True,
        )
        self._timer = tf1.train.SecondOrStepTimer(**self._every)
        self._step = tf1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Makes the session's first call restore the iterators, or save them if none are stored.

        They are not restored here, because another hook may still initialize them.
        """
        del session, coord
        self._is_first = True

    def before_run(self, run_context: Any) -> Any:
        """Restores or saves the iterators before the session's first call; fetches the step."""
        if self._is_first:
            self._is_first = False
            newest = tf1.train.latest_checkpoint(self._folder, self._file)
            if newest:
                self._saver.restore(run_context.session, newest)
            else:
                self._save(run_context.session)
        return tf1.train.SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Saves the iterators if a checkpoint is due."""
        # As in TensorFlow's hooks, the step may be the one before or after the update.
        if self._timer.should_trigger_for_step(run_values.results + 1):
            step = run_context.session.run(self._step)
            if self._timer.should_trigger_for_step(step):
                self._save(run_context.session)

    def end(self, session: Any) -> None:
        """Saves the iterators at the end of a session, unless they were saved at this step."""
        if session.run(self._step) != self._timer.last_triggered_step():
            self._save(session)

    @property
    def _file(self) -> str:
        return f"checkpoint_{self._name}"

    def _save(self, session: Any) -> None:
        step = session.run(self._step)
        self._timer.update_last_triggered_step(step)
        prefix = os.path.join(self._folder, f"{self._name}.ckpt")
        self._saver.save(session, prefix, step, self._file, write_meta_graph=False)
