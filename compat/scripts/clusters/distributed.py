"""TensorFlow's clusters, servers and sessions with early errors and mapped addresses.

`addresses.mapped` maps the addresses in a script to real ones, for `--hosts` and `--local`.
"""

from __future__ import annotations

import atexit
import functools
import os
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

from compat._tensorflow import tf1
from compat.cluster import access, ports, proxies, roles
from compat.cluster.liveness import key_value, shutdown
from compat.cluster.liveness.coordination import is_failing
from compat.cluster.liveness.departure_hook import DepartureHook
from compat.cluster.liveness.departures import REPLICAS_GRACE_SECS, Departures, save_rest
from compat.cluster.liveness.probe import reason_not_serving
from compat.cluster.liveness.run_state import at_exit
from compat.cluster.spec import ClusterSpec as CheckedSpec
from compat.cluster.spec import Task as ClusterTask
from compat.errors import UserError, is_success
from compat.runtime.graphs import session
from compat.runtime.graphs.cluster import Membership
from compat.scripts.clusters import addresses, inherited
from compat.scripts.shims.classes import RELEASE, Old, release

# Positions of the hooks among the arguments after `master` of `MonitoredTrainingSession`.
_HOOKS, _CHIEF_HOOKS = 3, 4
_REMEDY = (
    "add --allow_network after `compat run`, or --local for a cluster on this machine; "
    f"for a migrated program set {inherited.ALLOW_NETWORK}=1"
)


@dataclass(frozen=True)
class Task(ClusterTask):
    """The task that this process serves."""

    cluster: dict[str, list[str]]
    filters: tuple[str, ...]  # Device filters of its server; empty if it sees all devices.

    def others(self) -> Iterator[tuple[str, int, str]]:
        """Yields job, index and address of each other task."""
        spec = tf1.train.ClusterSpec(self.cluster)
        for job in spec.jobs:
            for index in spec.task_indices(job):
                if (job, index) != (self.job, self.index):
                    yield job, index, spec.task_address(job, index)


task: Task | None = None  # The task that this process serves; None before it creates a server.
own_targets: set[str] = set()  # Targets of the servers in this process.


def say(line: str) -> None:
    """Prints a message of this package between the output of the script."""
    print(f"compat: {line}", flush=True)


def is_chief() -> bool:
    """Returns whether this process is the chief or belongs to no cluster."""
    if task is None:
        return True
    try:
        chief = roles.chief_task(CheckedSpec(task.cluster))
    except UserError:  # The cluster has no job but that of parameter servers.
        return False
    return (task.job, task.index) == (chief.job, chief.index)


class ClusterSpec(tf1.train.ClusterSpec, metaclass=Old):
    """`tf.train.ClusterSpec` with the addresses of `--hosts` and `--local`."""

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, Mapping):
            cluster = addresses.mapped_cluster(cluster)
        super().__init__(cluster)


class Server(tf1.train.Server, metaclass=Old):
    """`tf.train.Server` with a one-line error for a port in use, and support for old protocols."""

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        if isinstance(server_or_cluster_def, Mapping):
            server_or_cluster_def = ClusterSpec(server_or_cluster_def)
        if protocol and protocol != "grpc":
            addresses.log_replacement(f"protocol {protocol!r}", "'grpc'")
            protocol = "grpc"
        if isinstance(server_or_cluster_def, tf1.train.ClusterSpec):
            prepare(server_or_cluster_def, job_name, task_index)
        super().__init__(server_or_cluster_def, job_name, task_index, protocol, config, start)
        self._ends = False
        if not _starts():
            return
        own_targets.add(text(self.target))
        definition = self.server_def
        cluster = tf1.train.ClusterSpec(definition.cluster).as_dict()
        global task
        filters = tuple(definition.default_session_config.device_filters)
        task = Task(definition.job_name, definition.task_index, cluster, filters)
        if session.is_installed() and task.job != "ps":
            membership = Membership(cluster, task.job, task.index)
            # The session's config names its own server by the address in the cluster.
            address = tf1.train.ClusterSpec(cluster).task_address(task.job, task.index)
            membership.targets.update([text(self.target), "grpc://" + address])
            session.join(membership)
        self._ends = bool(os.environ.get(inherited.TRACK)) and "ps" in cluster
        if self._ends and task.job != "ps":
            servers = {f"/job:ps/task:{i}": host for i, host in enumerate(cluster["ps"])}
            numbers = {name: number for number, name in enumerate(_trainers())}
            number = numbers.get(task.name, task.index)
            atexit.register(shutdown.announce, servers, number)

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Any:
        """Returns a server outside any cluster."""
        server = tf1.train.Server.create_local_server(config, start)
        own_targets.add(text(server.target))
        return server

    def join(self) -> None:
        """Blocks forever, as in TensorFlow; under `--track`, until the workers have finished."""
        departing = departures()
        if departing is not None:
            # This worker trains nothing itself: it runs operations for the others.
            departing.leave()
        if not self._ends or task is None or task.job != "ps":
            super().join()
            return
        trainers = [*_trainers().values()]

        def answers(trainer: int) -> bool:
            return reason_not_serving(trainers[trainer]) is None

        device = f"/job:ps/task:{task.index}"
        shutdown.wait_until_over(text(self.target), device, len(trainers) or 1, answers=answers)


def _trainers() -> dict[str, str]:
    """Returns the address of each task that trains, by the task's name; the chief is first."""
    if task is None:
        return {}
    try:
        cluster = CheckedSpec(task.cluster)
        return {
            t.name: cluster.address_of(t) for t in roles.trainers(cluster, has_coordinator=False)
        }
    except UserError:  # The cluster has jobs with unknown names.
        return {}


def departures() -> Departures | None:
    """Returns the `Departures` that report the exit of trainers to the chief.

    None on a parameter server, and if only one task trains.
    """
    trainers = _trainers()
    if task is None or task.job == "ps" or len(trainers) < 2:
        return None
    return Departures(key_value.place(CheckedSpec(task.cluster)), trainers, task.name)


def install() -> None:
    """Makes servers, also Estimators', refuse remote hosts unless `--allow_network` is given."""
    original = tf1.train.Server.__init__
    if not _starts():
        return

    @functools.wraps(original)
    def init(self: Any, server_or_cluster_def: Any, *args: Any, **kwargs: Any) -> None:
        definition = getattr(server_or_cluster_def, "cluster", server_or_cluster_def)
        hosts = [host.strip("[]") for host in _hosts(tf1.train.ClusterSpec(definition))]
        allowed = bool(os.environ.get(inherited.ALLOW_NETWORK))
        access.check_allowed(hosts, allowed, remedy=_REMEDY, say=say)
        original(self, server_or_cluster_def, *args, **kwargs)

    tf1.train.Server.__init__ = init


def _starts() -> bool:
    """Returns whether servers start; under `compat prove` none does, since a process runs alone."""
    return getattr(tf1.train.Server.__init__, "serves", True)


def _hosts(cluster: Any) -> list[str]:
    """Returns the hosts of a cluster's tasks, also for addresses that only TensorFlow accepts."""
    jobs = [job.values() if isinstance(job, dict) else job for job in cluster.as_dict().values()]
    return [address.rpartition(":")[0] for job in jobs for address in job]


def prepare(cluster: Any, job_name: str | None, task_index: int | None) -> None:
    """Checks that a server's port is free; keeps the traffic between the tasks out of proxies."""
    tasks = cluster.as_dict()
    os.environ.update(proxies.bypass(os.environ, _hosts(cluster)))
    job = job_name or (next(iter(tasks)) if len(tasks) == 1 else None)
    try:
        address = cluster.task_address(job, task_index or 0)
    except (ValueError, TypeError):
        return  # TensorFlow reports the error, with the line of the script.
    if address.rpartition(":")[2].isdigit():
        ports.check_free(address)


class Session(tf1.Session, metaclass=Old):
    """`tf.Session` with a mapped target."""

    def __init__(self, target: Any = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(_target(target), graph, config)


class InteractiveSession(tf1.InteractiveSession, metaclass=Old):
    """`tf.InteractiveSession` with a mapped target."""

    def __init__(self, target: Any = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(_target(target), graph, config)


class Supervisor(tf1.train.Supervisor, metaclass=Old):
    """`tf.train.Supervisor` whose sessions have mapped targets; ignores `graph_def` of 0.x."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("graph_def", None)
        super().__init__(*args, **kwargs)

    def prepare_or_wait_for_session(self, master: Any = "", *args: Any, **kwargs: Any) -> Any:
        """Returns a session at the mapped address."""
        _release_at_exit(master, self.is_chief)
        session = super().prepare_or_wait_for_session(_target(master), *args, **kwargs)
        departing = departures()
        if departing is not None and departing.is_chief == self.is_chief:
            departing.enter()
            self._part = session, departing
        return session

    _part: tuple[Any, Departures] | None = None
    PrepareSession = prepare_or_wait_for_session

    def stop(self, *args: Any, **kwargs: Any) -> None:
        """Stops the supervisor; a chief first waits for other workers' updates and saves them.

        With `SyncReplicasOptimizer` there is no such wait, and a thread that still waits for
        gradients is ignored after a short time, since replicas send no more.
        """
        if tf1.get_collection(RELEASE):
            self._stop_grace_secs = REPLICAS_GRACE_SECS
            kwargs.setdefault("ignore_live_threads", True)
        self._follow_others()
        super().stop(*args, **kwargs)

    def _follow_others(self) -> None:
        """Makes a chief wait for the updates of the other workers, and save them."""
        part, self._part = self._part, None
        if part is None or is_failing(self.coord) or tf1.get_collection(RELEASE):
            return
        session, departing = part
        departing.leave()
        saves = self._logdir and self._saver and self._save_model_secs
        if not saves:
            return
        waited, step = departing.wait_for_others(say), self._global_step
        reads = None if step is None else functools.partial(session.run, step)
        save = functools.partial(self._saver.save, session, self._save_path, global_step=step)
        save_rest(waited, self._saver, reads, save, say)


def train_MonitoredTrainingSession(master: Any = "", *args: Any, **kwargs: Any) -> Any:
    """Returns a session at the mapped address; at its end, the chief waits for other workers."""
    is_chief = kwargs.get("is_chief", args[0] if args else True)
    departing = departures()
    if departing is not None and departing.is_chief == bool(is_chief):
        saves = bool(kwargs.get("checkpoint_dir", args[1] if len(args) > 1 else None))
        place, name = (_CHIEF_HOOKS, "chief_only_hooks") if is_chief else (_HOOKS, "hooks")
        hooks: list[Any] = [DepartureHook(departing, saves, say)]  # Before the hook that saves.
        if len(args) > place:
            args = (*args[:place], [*hooks, *(args[place] or [])], *args[place + 1 :])
        else:
            kwargs[name] = [*hooks, *(kwargs.get(name) or [])]
    _release_at_exit(master, bool(is_chief))
    # Without this, TensorFlow waits two minutes for the thread that fills the token queue.
    if tf1.get_collection(RELEASE):
        kwargs.setdefault("stop_grace_period_secs", REPLICAS_GRACE_SECS)
    return tf1.train.MonitoredTrainingSession(_target(master), *args, **kwargs)


def device(device_name_or_function: Any) -> Any:
    """`tf.device` that also accepts "job:ps/task:0" without the leading slash."""
    name = device_name_or_function
    if isinstance(name, str) and name.strip().startswith("job:"):
        corrected = "/" + name.strip()
        addresses.log_replacement(f"device {name!r}", repr(corrected))
        name = corrected
    return tf1.device(name)


def text(target: Any) -> Any:
    """Returns the target of a session as a string; TensorFlow stores bytes."""
    return target.decode() if isinstance(target, bytes) else target


def _release_at_exit(master: Any, is_chief: bool) -> None:
    """Makes this process release the workers that wait for the next update, when it exits.

    A worker that fails does not, unless it is the chief: it needs its token if it starts again.
    """
    graph, target = tf1.get_default_graph(), _target(master)
    own = task.name if task is not None else "/job:ps"

    def released(error: BaseException | None) -> None:
        if is_chief or error is None or is_success(error):
            release(graph, target, own, is_chief)

    at_exit(released)


def _target(target: Any) -> Any:
    """Returns the mapped target of a session; that of a server in this process is not mapped."""
    target = text(target)
    return (
        addresses.mapped(target)
        if isinstance(target, str) and target not in own_targets
        else target
    )
