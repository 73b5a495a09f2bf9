"""Runs one task of a run from start to end: a task serves others, or trains."""

from __future__ import annotations

from typing import Any, Callable

import compat
from compat._tensorflow.release import profiler_module, version
from compat.checkpoint.io import CheckpointIO
from compat.cluster import roles
from compat.cluster.liveness import shared_folder, watchdog
from compat.cluster.roles import Role, role
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import Stopped
from compat.processes.exit_codes import exit_at_once
from compat.runtime.interface import Runtime
from experiments.launching import devices
from experiments.launching.signals import Stop
from experiments.training.inputs import data_of
from experiments.training.loop import train
from experiments.training.recording import completion
from experiments.training.recording.recording import check_logdir, system_metrics
from experiments.training.recording.run import Result


def run(
    experiment: Any,
    cluster: ClusterSpec | None,
    task: Task,
    stop: Stop,
    say: Callable[[str], None] = print,
) -> Result | None:
    """Runs `task` until it has ended.

    Returns the result if the task is the chief and the run is complete, else None. The task's
    server passes its lines about other tasks to `say`.
    """
    settings = experiment.settings
    runtime = compat.select_runtime(settings.runtime)
    _check(settings, cluster, runtime.has_coordinator)
    if cluster is not None and _is_complete(settings):
        return None
    what = Role.TRAIN_AS_CHIEF if cluster is None else role(task, cluster, runtime.has_coordinator)
    if task.job != "ps":
        devices.check_precision(devices.products(settings))
    devices.hide_gpus(task, what)
    if runtime.has_coordinator:
        tasks = devices.tasks_here(cluster, task)
        devices.configure_eager(settings, alone=cluster is None, tasks=tasks)
    if what in (Role.SERVE, Role.TRAIN):
        return _run(experiment, runtime, cluster, task, stop, what, say)
    # The folder is checked and locked before anything in it is changed, and before the server
    # starts, so that other tasks do not join a run that cannot begin.
    check_logdir(settings.logdir)
    checkpoints = CheckpointIO(settings.logdir).hold()
    try:
        return _run(experiment, runtime, cluster, task, stop, what, say)
    finally:
        checkpoints.close()


def _run(
    experiment: Any,
    runtime: Runtime,
    cluster: ClusterSpec | None,
    task: Task,
    stop: Stop,
    what: Role,
    say: Callable[[str], None],
) -> Result | None:
    settings, tasks = experiment.settings, devices.tasks_here(cluster, task)
    data = None if what is Role.SERVE else data_of(experiment.data())
    server = None
    try:
        if cluster is not None:
            server = compat.Server(
                cluster,
                task.job,
                task.index,
                config=devices.session_config(settings, tasks),
                runtime=settings.runtime,
                rendezvous_timeout=settings.rendezvous_timeout,
                run_token=settings.run_token,
                allow_network=settings.allow_network,
                say=say,
                while_waiting=stop.give_up,
            )
            if settings.shared_logdir:
                shared_folder.check(server, settings.logdir)
        if data is not None:
            return train(experiment, runtime, server, data, stop)
        if server is not None:
            # The chief may be asked to stop at the same time, and needs this server to save its
            # last checkpoint.
            with stop.deferred(), system_metrics(settings, task):
                server.join(lambda: stop.linger(server.chief_runs))
        return None
    except BaseException as error:
        lost = None if server is None else server.diagnose(error)
        # Other tasks may have completed the run without this one, and exited.
        if isinstance(lost or error, compat.PeerError) and _is_complete(settings):
            return None
        # A lost server, or a call that was abandoned, may block Python's exit, or abort it.
        stuck = watchdog.is_stuck() or (isinstance(error, Stopped) and error.loses)
        if stuck or (server is not None and (server.serves or lost is not None)):
            if server is not None:
                server.announce_end()  # Python's exit, which would call it, is skipped.
            exit_at_once(lost or error)
        if lost is None:
            raise
        raise lost from error


def _check(settings: Any, cluster: ClusterSpec | None, has_coordinator: bool) -> None:
    if settings.replicas_to_aggregate and has_coordinator:
        raise compat.UserError(
            f"--replicas_to_aggregate={settings.replicas_to_aggregate} is not available on the "
            "modern runtime, whose coordinator waits for all gradients of an update; leave it out, "
            "or use --runtime=legacy"
        )
    if settings.sync and cluster is None:
        raise compat.UserError("--sync aggregates several workers; use it with --strategy=ps")
    if settings.profile_steps is not None and profiler_module() is None:
        raise compat.UserError(
            f"--profile_steps={settings.profile_steps} needs the profiler of TensorFlow 2.2 or "
            f"later, this is {version()}; leave it out"
        )
    workers = 1 if cluster is None else roles.num_workers(cluster, has_coordinator)
    if settings.replicas_to_aggregate > workers:
        raise compat.UserError(
            f"--replicas_to_aggregate={settings.replicas_to_aggregate} is more than there are "
            f"workers; give 1 to {workers}, or leave it out for all"
        )


def _is_complete(settings: Any) -> bool:
    """Whether a run with these settings is complete; if so, prints how to resume it."""
    step = completion.step(settings)
    if step is not None:
        print(completion.message(settings.logdir, step))
    return step is not None
