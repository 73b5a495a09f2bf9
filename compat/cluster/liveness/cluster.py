"""A cluster as one of its tasks sees it: its role, its peers, and the end of its part."""

from __future__ import annotations

import functools
import time
from typing import Callable, Iterable

from compat.cluster import roles
from compat.cluster.liveness import diagnosis, identity, key_value, shutdown
from compat.cluster.liveness.departures import Departures
from compat.cluster.liveness.monitor import Monitor, run_checks
from compat.cluster.liveness.probe import reason_not_serving, reason_silent, reason_unreachable
from compat.cluster.liveness.run_state import Lifecycle, RunState, at_exit
from compat.cluster.roles import Role
from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import PeerError, ReplicaError, UserError


class Cluster:
    """A task in its cluster, as it is passed to runtimes, sessions and checks.

    The chief (`is_chief`) is the task of the job "chief" or "master" or, without such a job,
    usually worker 0; see `compat.cluster.roles`. It initializes the variables, and writes
    checkpoints and summaries.

    Each task that trains announces the end of its part to all serving tasks, once, when its process
    exits or by `announce_end`; see `RunState`. A serving task returns from `join` when all training
    tasks have announced their end; see `compat.cluster.liveness.shutdown`.

    Attributes:
      cluster: the checked `ClusterSpec`; its jobs are called chief, ps and worker if it has a
        coordinator.
      task: the `Task` of this process.
      runtime: name of the runtime, "legacy" or "modern".
      has_coordinator: whether one task schedules the updates of all workers; see
        `run_own_program`.
      role: the `Role` of the task.
      serves: whether the task has only to call `join`.
      is_chief: whether the task writes checkpoints and summaries.
      num_workers: how many workers compute updates.
      synchronous: whether workers make each update together, as in a cluster with a coordinator
        and without ps.
      target: the target of this task's sessions.
      address: the address of this task.
      rendezvous_timeout, while_waiting: see `Server`.
      run: the fingerprint of the run; see `compat.cluster.liveness.identity`.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        task: Task,
        runtime: str,
        has_coordinator: bool,
        *,
        rendezvous_timeout: float,
        run_token: str,
        say: Callable[[str], None],
        while_waiting: Callable[[float], None],
    ) -> None:
        roles.role(task, cluster, has_coordinator)  # Checks the names of the program.
        if has_coordinator:
            cluster, task = roles.strategy_names(cluster, task)
        self.cluster, self.task, self.runtime = cluster, task, runtime
        self._take_part(has_coordinator)
        self._serving = [each for each in all_tasks(cluster) if each not in self._trainers]
        self.rendezvous_timeout, self.while_waiting = rendezvous_timeout, while_waiting
        self.run = identity.fingerprint(cluster, run_token)
        self.address = cluster.address_of(task)
        self.target = "grpc://" + self.address
        self._say = say
        self._lifecycle = Lifecycle(
            functools.partial(diagnosis.peer_error, cluster=cluster, own=task)
        )

    def _take_part(self, has_coordinator: bool) -> None:
        cluster, task = self.cluster, self.task
        self.has_coordinator = has_coordinator
        self.role = roles.role(task, cluster, has_coordinator)
        self.serves = self.role is Role.SERVE
        self.is_chief = self.role not in (Role.SERVE, Role.TRAIN)
        self.num_workers = roles.num_workers(cluster, has_coordinator)
        self.synchronous = roles.is_synchronous(cluster, has_coordinator)
        self._trainers = roles.trainers(cluster, has_coordinator)

    def run_own_program(self) -> None:
        """Makes this task train by itself, since its program has no step for a coordinator.

        All tasks that create a session do the same. Other tasks serve: parameter servers, and
        workers whose program calls `join` because `serves` is true.
        """
        self._take_part(has_coordinator=False)
        self._serving = [task for task in self._serving if task != self.task]

    @property
    def state(self) -> RunState:
        """The state of this task's part in the run; see `RunState`."""
        return self._lifecycle.state

    @property
    def trainer_index(self) -> int:
        """Number of this task among the training tasks; the chief is 0."""
        return self._trainers.index(self.task)

    @property
    def shards(self) -> list[Task]:
        """The tasks that compute updates, in the order in which they are given shards of data."""
        if self.has_coordinator and not self.synchronous:
            return [Task("worker", i) for i in self.cluster.task_indices("worker")]
        return list(self._trainers)

    @property
    def departures(self) -> Departures | None:
        """The trainers' announcements to the chief; None if this task is not one of several."""
        alone = self.has_coordinator or self.serves or len(self._trainers) < 2
        if alone or roles.is_local(self.cluster):
            return None
        trainers = {task.name: self.cluster.address_of(task) for task in self._trainers}
        return Departures(key_value.place(self.cluster), trainers, self.task.name)

    def join(self, poll: Callable[[], None] = lambda: None) -> None:
        """Serves until all processes that train have ended.

        Args:
          poll: called about twice a second until the chief is done; an error in it ends the wait.

        Raises:
          UserError: the task trains, so no task would remain to end the run.
          PeerError: the chief did not start, or was lost and has not returned in time.
        """
        if not self.serves:
            raise UserError(
                f"{self.task.name} trains on the {self.runtime} runtime; call join() only "
                "where server.serves is true"
            )
        if self.state is RunState.SUCCEEDED:
            return  # This task has served already.
        self.begin()
        self._say(f"{self.task.name} serves at {self.address} until training ends")
        monitor = self.chief_monitor()

        def poll_both() -> None:
            poll()
            monitor.poll()

        # A parameter server does not know whether the other tasks run programs of their own.
        is_worker = self.task.job != "ps"
        trainers = roles.trainers(self.cluster, has_coordinator=is_worker and self.has_coordinator)

        def answers(trainer: int) -> bool:
            return reason_not_serving(self.cluster.address_of(trainers[trainer])) is None

        shutdown.wait_until_over(
            self.target, self.task.name, len(trainers), self._say, poll_both, self.run, answers
        )
        self._lifecycle.end(None)

    def chief_runs(self) -> bool:
        """Whether the chief's port accepts connections, which it does until its process exits."""
        return reason_unreachable(self.cluster.address_of(self._trainers[0])) is None

    def chief_monitor(self) -> Monitor:
        """Returns a monitor of the chief, to be polled by a task that serves it or waits for it.

        See `identity.chief_check` for what it checks.
        """
        check = identity.chief_check(self.cluster, self.has_coordinator, self.run)
        chief = self.cluster.describe(self._trainers[0])
        return Monitor({chief: check}, self.rendezvous_timeout, self._say)

    def monitor(
        self,
        tasks: Iterable[Task],
        reason: Callable[[str], str | None],
        error: type[PeerError] = PeerError,
    ) -> Monitor:
        """Returns a monitor that probes other tasks, and gives them up after the timeout."""
        checks = {
            self.cluster.describe(task): functools.partial(reason, self.cluster.address_of(task))
            for task in tasks
            if task != self.task
        }
        return Monitor(checks, self.rendezvous_timeout, self._say, error=error)

    def wait_for_peers(self, everybody: bool) -> None:
        """Waits for the parameter servers and the chief, or for all tasks if `everybody` is true.

        Without `everybody`, a later session of this task does not wait for the chief, since the
        variables have their values by then. Raises `PeerError` after the timeout.
        """
        needs_chief = self.state is not RunState.RUNNING
        # Without parameter servers, the servers start when all tasks have met.
        reason = identity.reason_not_met if self.synchronous else identity.reason_not_member
        checks = {
            self.cluster.describe(task): functools.partial(
                reason, self.cluster.address_of(task), task, self.run
            )
            for task in all_tasks(self.cluster)
            if (everybody or task.job == "ps" or (needs_chief and task == self._trainers[0]))
            and task != self.task
        }
        try:
            Monitor(checks, self.rendezvous_timeout, self._say).wait()
        except BaseException as error:
            self.diagnose(error)
            raise
        self.begin()

    def begin(self) -> None:
        """Records that this task trains: it has met its peers, and opens a session."""
        self._lifecycle.begin()

    def diagnose(self, error: BaseException) -> PeerError | None:
        """Records the error by which this task ends; returns the lost peer behind it, or None.

        Call it before anything is closed, because closing takes seconds and the peer may return. If
        the error is retryable, such as a lost peer or SIGTERM, no end is announced, and the serving
        tasks wait for this task to return.
        """
        return self._lifecycle.end(error)

    def announce_end(self) -> None:
        """Announces the end of this task's part to the serving tasks; further calls do nothing.

        The exit of the process does the same. A process that continues after its last session, such
        as a notebook, may call it; later sessions find no servers.
        """
        announced = None if self.serves else self._lifecycle.announce()
        if announced is None:
            return
        addresses = {task.name: self.cluster.address_of(task) for task in self._serving}
        for task in self._trainers:  # A training task may have exited, so it gets no announcement.
            if task.name in addresses and reason_unreachable(addresses[task.name]) is not None:
                del addresses[task.name]
        failed = announced is RunState.FAILED
        alone = self.has_coordinator and not self.synchronous
        shutdown.announce(addresses, self.trainer_index, self.run, failed, alone)

    def announce_at_exit(self) -> None:
        """Makes the exit of the process announce the end of this task's part."""

        def announce(uncaught: BaseException | None) -> None:
            if uncaught is not None:
                self.diagnose(uncaught)
            self.announce_end()

        at_exit(announce)


def call_monitor(
    cluster: Cluster,
    workers: bool,
    then: Callable[[], None] = lambda: None,
    waits_for_replicas: Callable[[], bool] = lambda: False,
) -> Callable[[], None]:
    """Returns a function to poll during a call into TensorFlow; it raises `PeerError` on a loss.

    A parameter server that refuses connections is lost. A task that does not answer is reported,
    and is lost after the timeout, since TensorFlow might wait for it for ever. With `workers`, this
    also applies to workers that do not answer; the coordinator replaces those that refuse
    connections. A call that `waits_for_replicas` needs the gradients of the other trainers, so it
    also applies to these, even if they refuse connections, and raises `ReplicaError`. If no task is
    lost, the function calls `then`.
    """
    began, spec = time.monotonic(), cluster.cluster
    servers = diagnosis.parameter_servers(spec)
    needed = all_tasks(spec) if workers else servers
    checks = {
        spec.describe(task): functools.partial(reason_unreachable, spec.address_of(task))
        for task in servers
    }
    monitors: list[Monitor] = []  # Created by the first poll, since most calls return at once.

    def poll() -> None:
        if not monitors:
            monitors.append(cluster.monitor(needed, reason_silent))
            if waits_for_replicas():
                replicas = cluster.monitor(cluster.shards, reason_not_serving, ReplicaError)
                monitors.append(replicas)
        for peer, reason in run_checks(checks).items():
            if reason == "refused":
                raise PeerError(f"lost {peer}; {diagnosis.REMEDY}")
        for monitor in monitors:
            monitor.poll()
        if any(monitor.missing for monitor in monitors):
            cluster.while_waiting(time.monotonic() - began)
        then()

    return poll
