"""Monitored sessions: they run steps, and hooks around each of them."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import private, tf1
from compat.runtime.interface import MonitoredArguments, current_runtime

_USE_DEFAULT: Any = object()


def MonitoredTrainingSession(  # TensorFlow's name, of a function as well.
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Any = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Sequence[Any] | None = None,
    save_checkpoint_secs: float | None = _USE_DEFAULT,
    save_summaries_steps: int | None = _USE_DEFAULT,
    save_summaries_secs: float | None = _USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = _USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> Any:
    """Differs from `tf.compat.v1.train.MonitoredTrainingSession` in that it also runs steps.

    `session.run(step, *arrays)` returns the values of this call by name. Arguments, defaults and
    hooks have the meaning that they have in TensorFlow, on either runtime, because TensorFlow's
    hooks run unchanged. A hook fetches a value of a step as `step["loss"]`, the global step as
    `tf1.train.get_global_step()`, and `tf1.summary` operations inside a step by `SummarySaverHook`.

    Before a chief that saves checkpoints ends its hooks, it waits for the trainers that still make
    updates, unless they are lost. So its last checkpoint has all updates.

    Checkpoints are saved by a `compat.Saver`, unless the scaffold has another saver: only the chief
    writes them, and it refuses NaN or infinity in a trainable variable. A chief that saves
    checkpoints locks the folder until the session is closed.

    On the legacy runtime a call that fails with `AbortedError` or `UnavailableError`, or that would
    wait forever for a lost parameter server, makes a new session, which resumes from the last
    checkpoint; a `PeerError` is raised if the server has not returned in `rendezvous_timeout`.

    Where the modern runtime has a coordinator:

    - The coordinator replaces a lost worker. A lost parameter server ends the process with a
      `PeerError`; started again, it resumes from the last checkpoint, as with a `Supervisor`.
    - A serving task returns when the run is over: its hooks are not called.
    - `run` of a step keeps all workers busy: it returns the values of a call that was scheduled
      earlier. If a hook fetches values of the step, `run` waits for the call that computes them. So
      a hook that fetches such values at each call, as `NanTensorHook` does, makes the workers take
      turns. Values that depend on variables alone are read when all scheduled steps are done.
    - The global step is the number of scheduled steps, so `StopAtStepHook` stops at exactly that
      step; reading or saving variables waits until the scheduled steps are done.
    - Calls of steps take no `RunOptions`.

    Args (those that differ; the others are TensorFlow's):
      save_graph_def: as in TensorFlow 2.3 and later.

    Raises:
      UserError: the checkpoints are of another model, or the file `checkpoint` does not name them;
        or another process saves checkpoints to the folder.
      PeerError: a peer did not start, or was lost and has not returned.
    """
    if save_summaries_steps is _USE_DEFAULT and save_summaries_secs is _USE_DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    if save_checkpoint_steps is _USE_DEFAULT and save_checkpoint_secs is _USE_DEFAULT:
        save_checkpoint_steps, save_checkpoint_secs = None, 600
    save_steps, save_secs = _given(save_checkpoint_steps), _given(save_checkpoint_secs)
    summary_steps, summary_secs = _given(save_summaries_steps), _given(save_summaries_secs)
    scaffold = scaffold or tf1.train.Scaffold()
    summary_dir = summary_dir or checkpoint_dir

    standard_hooks: list[Any] = []
    saves = False
    if is_chief:
        standard_hooks += chief_only_hooks or []
        if summary_dir and (log_step_count_steps or 0) > 0:
            standard_hooks.append(
                tf1.train.StepCounterHook(log_step_count_steps, output_dir=summary_dir)
            )
        if summary_dir and max(summary_steps or 0, summary_secs or 0) > 0:
            standard_hooks.append(
                tf1.train.SummarySaverHook(
                    summary_steps, summary_secs, summary_dir, scaffold=scaffold
                )
            )
        if checkpoint_dir and max(save_secs or 0, save_steps or 0) > 0:
            saves = True
            graph = {} if save_graph_def else {"save_graph_def": False}
            standard_hooks.append(
                tf1.train.CheckpointSaverHook(
                    checkpoint_dir, save_secs, save_steps, scaffold=scaffold, **graph
                )
            )
    return current_runtime().monitored_session(
        MonitoredArguments(
            master,
            is_chief,
            checkpoint_dir,
            scaffold,
            [*standard_hooks, *(hooks or [])],  # In TensorFlow's order.
            config,
            stop_grace_period_secs,
            max_wait_secs,
            saves=saves,
        )
    )


def MonitoredSession(
    session_creator: Any = None,
    hooks: Sequence[Any] | None = None,
    stop_grace_period_secs: int = 120,
) -> Any:
    """Differs from `tf.compat.v1.train.MonitoredSession` as `MonitoredTrainingSession` does.

    It has only the hooks that the program passes, so it writes nothing by itself.

    Args (those that differ; the others are TensorFlow's):
      session_creator: a `ChiefSessionCreator`, the default, or a `WorkerSessionCreator`. In a
        cluster their `master` is this task's server by default. A creator of the program's own
        may be given as well.

    Raises:
      UserError, PeerError: as `MonitoredTrainingSession`.
    """
    creator = session_creator or tf1.train.ChiefSessionCreator()
    is_chief = type(creator) is tf1.train.ChiefSessionCreator
    known = is_chief or type(creator) is tf1.train.WorkerSessionCreator
    arguments = private.creator_arguments(creator) if known else {}
    return current_runtime().monitored_session(
        MonitoredArguments(
            arguments.get("master", ""),
            is_chief,
            arguments.get("checkpoint_dir"),
            arguments.get("scaffold") or tf1.train.Scaffold(),
            hooks or [],
            arguments.get("config"),
            stop_grace_period_secs,
            arguments.get("max_wait_secs", 7200),
            checkpoint_file=arguments.get("checkpoint_filename_with_path"),
            creator=None if known else creator,
        )
    )


def SingularMonitoredSession(
    hooks: Sequence[Any] | None = None,
    scaffold: Any = None,
    master: str = "",
    config: Any = None,
    checkpoint_dir: str | None = None,
    stop_grace_period_secs: int = 120,
    checkpoint_filename_with_path: str | None = None,
) -> Any:
    """Differs from `tf.compat.v1.train.SingularMonitoredSession` as `MonitoredSession` does.

    Raises:
      UserError: as `MonitoredTrainingSession`.
      PeerError: a peer did not start, or was lost.
    """
    return current_runtime().monitored_session(
        MonitoredArguments(
            master,
            True,
            checkpoint_dir,
            scaffold or tf1.train.Scaffold(),
            hooks or [],
            config,
            stop_grace_period_secs,
            7200,
            recovers=False,
            checkpoint_file=checkpoint_filename_with_path,
        )
    )


def _given(value: Any) -> Any:
    return None if value is _USE_DEFAULT else value
