"""Verifies that all tasks of a cluster share a folder, before training begins.

Each task stores the path of its folder on its own server. The chief writes a marker file with a
random name to its folder, makes each server read that name under the path that is stored there, and
stores the result on all servers. Servers answer even if their tasks are busy. A task that is
restarted during training reads the result from the parameter servers.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import uuid
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from compat._tensorflow import tf1
from compat.cluster.liveness import key_value
from compat.cluster.liveness.cluster import Cluster
from compat.cluster.liveness.monitor import run_checks, side_by_side
from compat.cluster.liveness.probe import reason_unreachable
from compat.cluster.roles import chief_task
from compat.cluster.spec import Task, all_tasks
from compat.errors import PeerError, UserError, unless_usable

_FOLDER = "compat_shared_folder"  # The key of a task's path.
_FINDING = "compat_shared_folder_finding"  # The key of an exit code and a message.
_POLL_SECS = 0.5
_PATIENCE_SECS = 10.0  # Time until other hosts see a new file, as on network file systems.


def check(cluster: Cluster, folder: str) -> None:
    """Returns when all tasks are known to see the same folder, given as this task's absolute path.

    Every task of a cluster calls this after its server has started; the chief waits for all tasks.
    Raises `UserError` if a task does not see the chief's marker file, or the chief cannot write it;
    `PeerError` if a task did not start in time, or if the chief gave up or was lost before it had a
    result.
    """
    if not cluster.is_chief:
        key_value.write(cluster.target, cluster.task, _FOLDER, folder)
        if not cluster.serves:
            cluster.wait_for_peers(everybody=False)
        print(f"{cluster.task.name} waits until the chief has seen that all tasks share {folder}")
        # Time for the chief to start, to wait for its peers in turn, and to check their folders.
        longest = 2 * cluster.rendezvous_timeout + _PATIENCE_SECS + key_value.ANSWER_SECS
        _await_finding(cluster, longest)
        return
    others = [task for task in all_tasks(cluster.cluster) if task != cluster.task]
    try:
        cluster.wait_for_peers(everybody=True)
        with _marker_file(folder) as name:
            blind = _blind_tasks(cluster, others, name)
        if blind:
            raise UserError(complaint(cluster.task, folder, blind))
    except BaseException as error:  # Also after Ctrl-C the others must not wait in vain.
        code = UserError.exit_code if isinstance(error, UserError) else PeerError.exit_code
        _tell(cluster, others, f"{code} {error}")
        raise
    _tell(cluster, others, "0")


@contextlib.contextmanager
def _marker_file(folder: str) -> Iterator[str]:
    """Creates an empty file with a unique name in `folder` for the body; yields the name."""
    path = Path(folder, f".seen-by-all-{uuid.uuid4().hex}")
    what, remedy = f"log folder {folder} cannot be written to", "choose another with --logdir"
    with unless_usable(what, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    try:
        yield path.name
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _blind_tasks(cluster: Cluster, tasks: Sequence[Task], name: str) -> dict[str, str]:
    """Returns the folder ("" if unknown) of each task that does not see the marker file."""
    deadline = time.monotonic() + _PATIENCE_SECS
    checks = {task.name: functools.partial(_blind_folder, cluster, task, name) for task in tasks}
    while True:
        blind = run_checks(checks)
        if not blind or time.monotonic() > deadline:
            return blind
        checks = {task: checks[task] for task in blind}
        time.sleep(_POLL_SECS)


def _blind_folder(cluster: Cluster, task: Task, name: str) -> str | None:
    """Returns None if a task sees the marker file; else its folder, "" if it has stored none."""
    folder = key_value.read(_target(cluster, task), task, _FOLDER)
    if folder is None:
        return ""
    errors = tf1.errors  # FailedPreconditionError if the folder is a file.
    lacks = (errors.NotFoundError, errors.PermissionDeniedError, errors.FailedPreconditionError)
    with contextlib.suppress(*lacks), key_value.session(
        _target(cluster, task), task.name
    ) as opened:
        opened.run(tf1.read_file(os.path.join(folder, name)))
        return None
    return folder


def complaint(chief: Task, folder: str, blind: Mapping[str, str]) -> str:
    """Returns the error message for tasks that do not see the chief's marker file.

    Args:
      chief: the chief, which has written the file.
      folder: the chief's log folder.
      blind: by task name, the log folder of each such task; "" if the task has reported none.
    """
    silent = [name for name, path in blind.items() if not path]
    if silent:
        return (
            f"{', '.join(silent)} did not report its log folder; start all tasks with "
            "--shared_logdir, or none"
        )
    each = ", ".join(f"{name} at its {path}" for name, path in blind.items())
    return (
        f"what {chief.name} writes to {folder} is not seen by {each}; mount one folder on all "
        "machines and name it with --logdir, or leave out --shared_logdir"
    )


def _tell(cluster: Cluster, tasks: Sequence[Task], finding: str) -> None:
    def tell(task: Task) -> None:
        if reason_unreachable(cluster.cluster.address_of(task)) is None:
            with contextlib.suppress(tf1.errors.OpError):  # A lost task needs no result.
                key_value.write(_target(cluster, task), task, _FINDING, finding)

    side_by_side({task: functools.partial(tell, task) for task in tasks})


def _await_finding(cluster: Cluster, timeout: float) -> None:
    """Returns when the chief reports success; raises the error that the chief reports."""
    finding = None
    deadline = time.monotonic() + timeout
    first_ps = Task("ps", cluster.cluster.task_indices("ps")[0])
    while finding is None:
        if time.monotonic() > deadline:
            chief = chief_task(cluster.cluster)
            raise PeerError(
                f"{cluster.cluster.describe(chief)} did not report within {timeout:g} s whether "
                "all tasks share the log folder; start it again and then this task"
            )
        time.sleep(_POLL_SECS)
        finding = key_value.read(cluster.target, cluster.task, _FINDING)
        if finding is None and reason_unreachable(cluster.cluster.address_of(first_ps)) is None:
            # A task that returns during training is not checked again: the parameter servers have
            # the result of the running run.
            with contextlib.suppress(tf1.errors.OpError, PeerError):
                finding = key_value.read(_target(cluster, first_ps), first_ps, _FINDING)
    code, _, line = finding.partition(" ")
    if code == str(UserError.exit_code):
        raise UserError(line)
    if code != "0":
        raise PeerError(f"the chief did not begin the run: {line or 'it was stopped'}")


def _target(cluster: Cluster, task: Task) -> str:
    return "grpc://" + cluster.cluster.address_of(task)
