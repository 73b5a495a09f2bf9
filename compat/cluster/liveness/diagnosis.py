"""Names the lost peer that causes an error, or that keeps a call from returning, in one line."""

from __future__ import annotations

import functools
import re
import time
from typing import Callable, Iterable, Mapping

from compat._tensorflow import tf1
from compat.cluster.liveness.monitor import run_checks
from compat.cluster.liveness.probe import reason_not_serving, reason_unreachable
from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import PeerError

_TASK = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+)")
# Lines above the reason in a message of TensorFlow: the number of errors, and the task.
_HEADING = re.compile(r"Graph execution error:|=*|.*From /job:\S+:|\d+ root error\(s\) found\.")
# Messages of TensorFlow about a lost peer, even if another process has its place now.
_GONE = re.compile(
    r"restarted|incarnation|is down|heartbeat|Collective ops is aborted|Socket closed|preempted"
    r"|[Cc]onnection (reset|refused|timed out)|[Ff]ailed to connect|Connect Failed|Broken pipe"
    r"|GOAWAY|OS Error|Endpoint read failed|Stream removed|RST_STREAM"
    r"|[Tt]ransport (is )?(closed|closing)|[Kk]eepalive|No route to host"
    r"|Network is unreachable|empty address list"
)
# Messages about other services, such as a file system whose storage does not answer.
_OTHERS = re.compile(r"libcurl|HTTP (request|response)|\b(?!grpc|dns|ipv[46]|unix)[a-z0-9]+://")
# A task that was killed closes its port some time after the connections of which the error is.
_CLOSING_SECS = 1.0
# Time for a packet that gets lost; the machine of a task that is gone reports it at once.
_PATIENCE_SECS = 10.0
REMEDY = "start it again and then this task: training resumes from the last checkpoint"


def peer_error(
    error: BaseException,
    cluster: ClusterSpec | None,
    remedy: str = REMEDY,
    own: Task | None = None,
) -> PeerError | None:
    """Returns the `PeerError` that caused an error of TensorFlow, or None.

    The class of the error is not enough, since the program and file systems raise the same ones. So
    this probes the peers. If all answer, and the message does not report a loss, no peer caused
    the error. `own` is this task: the message may mention it, but it is not the lost peer.
    """
    errors = tf1.errors
    # Workers that make each update together get the last two of these errors.
    others = (errors.AbortedError, errors.CancelledError, errors.DeadlineExceededError)
    if cluster is None or not isinstance(error, (errors.UnavailableError, *others)):
        return None
    tasks = [Task(job, int(index)) for job, index in _TASK.findall(str(error))]
    known = set(all_tasks(cluster))
    mentioned = [task for task in dict.fromkeys(tasks) if task != own and task in known]
    suspects = mentioned + (parameter_servers(cluster) or all_tasks(cluster))
    for pause in (0.0, _CLOSING_SECS):
        time.sleep(pause)
        lost = lost_task(suspects, cluster, remedy)
        if lost is not None:
            return lost
    if not _GONE.search(str(error)) or _OTHERS.search(str(error)):
        peers = [task for task in suspects if task != own]
        return lost_task(peers, cluster, remedy, reason_not_serving)
    what = "a task of the cluster"
    if mentioned:
        what = f"{cluster.describe(mentioned[0])}, which is back"
    lines = (line.strip() for line in str(error).splitlines())
    reason = next((line for line in lines if not _HEADING.fullmatch(line)), type(error).__name__)
    return PeerError(f"lost {what} ({reason}); {remedy}")


def lost_task(
    tasks: Iterable[Task],
    cluster: ClusterSpec,
    remedy: str = REMEDY,
    reason: Callable[[str, float], str | None] = reason_unreachable,
) -> PeerError | None:
    """Returns the error for the first of `tasks` that does not answer a probe now, or None."""
    places = {cluster.describe(task): cluster.address_of(task) for task in tasks}
    lost = unanswered(places, reason)
    return PeerError(f"lost {lost[0]}; {remedy}") if lost else None


def unanswered(
    addresses: Mapping[str, str], reason: Callable[[str, float], str | None] = reason_unreachable
) -> list[str]:
    """Returns the names of the tasks that do not answer; probes all of them in parallel."""
    checks = {n: functools.partial(reason, a, _PATIENCE_SECS) for n, a in addresses.items()}
    return list(run_checks(checks))


def lost_parameter_server(cluster: ClusterSpec, remedy: str) -> PeerError | None:
    """Returns the error for the first parameter server that cannot be reached now, or None."""
    return lost_task(parameter_servers(cluster), cluster, remedy)


def parameter_servers(cluster: ClusterSpec) -> list[Task]:
    """Returns the tasks that store variables."""
    return [task for task in all_tasks(cluster) if task.job == "ps"]
