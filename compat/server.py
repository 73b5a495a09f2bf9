"""The server of one task: what makes a process a member of the cluster."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable

from compat._tensorflow import startup, tf1
from compat.cluster import access, keepalive, ports, proxies, roles
from compat.cluster.address import split_address
from compat.cluster.roles import Role
from compat.cluster.spec import Task, all_tasks, checked_cluster, only_task
from compat.errors import PeerError, UserError, raised_as
from compat.liveness import diagnosis, identity, key_value, shutdown
from compat.liveness.departures import Departures
from compat.liveness.monitor import Monitor
from compat.liveness.probe import reason_not_serving, reason_unreachable
from compat.liveness.run_state import Lifecycle, RunState, at_exit
from compat.runtime.interface import select_runtime


class Server:
    """`tf.compat.v1.train.Server` that exits when the run is over and reports lost peers.

    `join` returns when training ends. A port that is in use takes one line. Peers are waited
    for in any start order, and those that are missing are named.

    Args:
      server_or_cluster_def: a `ClusterSpec`, ours or TensorFlow's, a dict of host lists, a
        `ClusterDef`, or a `ServerDef`, which has defaults for the next four as well.
      job_name: "ps", "worker", "chief", or what the cluster's jobs are called; see
        `compat.cluster.roles`. Defaults to the only job of the cluster.
      task_index: number of the task in its job; defaults to its only one.
      protocol: as in TensorFlow; None means "grpc".
      config: a `ConfigProto` for the server's devices and threads.
      start: False if `start` is to be called later.
      runtime: see `compat.select_runtime`; chosen here for the whole process.
      rendezvous_timeout: seconds for which this task waits for the tasks it needs; one that
        serves needs the chief.
      run_token: what tells this run from another one with the same cluster; the same text for
        all of its tasks.
      allow_network: whether hosts may be others than this machine; see `compat.cluster.access`.
      say: receives lines about waiting.
      while_waiting: called every few seconds while a call that needs other tasks does not return
        and one of them does not answer, with the seconds that it has taken so far; what it raises,
        ends the waiting.

    Attributes:
      runtime: name of the runtime, "legacy" or "modern".
      cluster: of checked data; its jobs are called chief, ps and worker on the modern runtime.
      task: the `Task` that this process is in it.
      role: what the task does on this runtime.
      serves: whether the task has nothing to do but `join`.
      is_chief: whether the task writes checkpoints and summaries.
      num_workers: how many workers compute updates.
      synchronous: whether they make each update together; so on the modern runtime, where the
        cluster has no ps.
      target: what a session connects to.
      rendezvous_timeout, while_waiting: as given.
      run: what its tasks have in common; see `compat.liveness.identity`.

    Raises:
      UserError: the cluster or the task is not valid or not allowed, the port is in use, or the
        runtime cannot be had. The first is a `tf.errors.InvalidArgumentError` as well, a port in
        use a `tf.errors.UnknownError`, as in TensorFlow.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
        *,
        runtime: str = "auto",
        rendezvous_timeout: float = 60.0,
        run_token: str = "",
        allow_network: bool = False,
        say: Callable[[str], None] = print,
        while_waiting: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        chosen = select_runtime(runtime)
        self.runtime = chosen.name
        defined = server_or_cluster_def
        if hasattr(defined, "default_session_config"):  # A `ServerDef`.
            job_name = defined.job_name if job_name is None else job_name
            task_index = defined.task_index if task_index is None else task_index
            protocol = protocol or defined.protocol
            merged = tf1.ConfigProto()
            merged.MergeFrom(defined.default_session_config)
            merged.MergeFrom(config or tf1.ConfigProto())
            defined, config = defined.cluster, merged
        with raised_as(tf1.errors.InvalidArgumentError):
            self.cluster = checked_cluster(defined)
        self.task = only_task(self.cluster, job_name, task_index)
        self._roles = chosen.roles
        self.role = roles.role(self.task, self.cluster, self._roles)
        if self.role is Role.EVALUATE:
            raise UserError(
                "an evaluator is in no cluster and has no server; let it read the checkpoints in "
                "the chief's log folder without one"
            )
        if self._roles == "modern":
            self.cluster, self.task = roles.strategy_names(self.cluster, self.task)
        hosts = access.cluster_hosts(self.cluster)
        remedy = "give compat.Server allow_network=True"
        access.check_allowed(hosts, allow_network, remedy=remedy, say=say)
        self.serves = self.role is Role.SERVE
        self.is_chief = self.role not in (Role.SERVE, Role.TRAIN)
        self.num_workers = roles.num_workers(self.cluster, self._roles)
        self.synchronous = roles.is_synchronous(self.cluster, self._roles)
        self._trainers = roles.trainers(self.cluster, self._roles)
        self.rendezvous_timeout = rendezvous_timeout
        self.while_waiting = while_waiting
        self._say = say
        self.run = identity.fingerprint(self.cluster, run_token)
        self._lifecycle = Lifecycle(
            functools.partial(diagnosis.peer_error, cluster=self.cluster, own=self.task)
        )
        self._server: Any = None
        self.address = self.cluster.address_of(self.task)
        self.target = "grpc://" + self.address
        proxies.go_past(hosts, say)
        if not all(map(access.is_written_loopback, hosts)):  # This machine is always there.
            keepalive.begin(access.cluster_ports(self.cluster), rendezvous_timeout)
        port = split_address(self.address, any_port=True)[1]
        if port:  # Else the system chooses one.
            ports.release_inherited(port)
            with raised_as(tf1.errors.UnknownError):
                ports.check_free(self.address)
        # The server of a pure coordinator, or of synchronous workers, belongs to their strategy.
        if self.role is not Role.COORDINATE and not self.synchronous:
            self._server = tf1.train.Server(
                self.cluster.as_dict(),
                job_name=self.task.job,
                task_index=self.task.index,
                protocol=protocol or "grpc",
                config=config,
                start=False,
            )
            self.target = self._server.target
            self.address = self.address if port else self.target[len("grpc://") :]
            if start:
                self.start()
        if roles.is_local(self.cluster):
            return  # There are no peers, and the runtime is that of a process alone.
        if not self.serves:
            at_exit(self._announce_at_exit)
        chosen.add_server(self)

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Returns a server that is in no cluster, on a free port of this machine."""
        return Server({"localhost": ["localhost:0"]}, config=config, start=start)

    @property
    def state(self) -> RunState:
        """What has become of this task's part in the run; see `RunState`."""
        return self._lifecycle.state

    @property
    def trainer_index(self) -> int:
        """Number of this task among those that hand out updates; the chief is 0."""
        return self._trainers.index(self.task)

    @property
    def shards(self) -> list[Task]:
        """The tasks that compute updates, in the order in which they are given shards of data."""
        if self._roles == "modern" and not self.synchronous:
            return [Task("worker", i) for i in self.cluster.task_indices("worker")]
        return list(self._trainers)

    @property
    def departures(self) -> Departures | None:
        """What trainers that make updates of their own tell the chief; None if there are none."""
        alone = self._roles == "modern" or self.serves or len(self._trainers) < 2
        if alone or roles.is_local(self.cluster):
            return None
        trainers = {task.name: self.cluster.address_of(task) for task in self._trainers}
        return Departures(key_value.place(self.cluster), trainers, self.task.name)

    @property
    def server_def(self) -> Any:
        """The `ServerDef` of TensorFlow's server; None where that belongs to a strategy."""
        return None if self._server is None else self._server.server_def

    def start(self) -> None:
        """Starts the server, unless its strategy does; only needed after `start=False`."""
        if self._server is None:
            return
        with startup.without_notes():
            self._server.start()
        if not roles.is_local(self.cluster):
            identity.declare(self.target, self.task, self.run)

    def join(self, poll: Callable[[], None] = lambda: None) -> None:
        """Serves until training ends: until the processes that train have ended.

        Args:
          poll: called about twice a second until the chief is done; what it raises ends the wait.

        Raises:
          UserError: the task trains, so that no task would be left to end the training.
          PeerError: the chief did not come, or has gone and not come back, in time.
        """
        if not self.serves:
            raise UserError(
                f"{self.task.name} trains on the {self.runtime} runtime; call join() only "
                "where server.serves is true"
            )
        if self.state is RunState.SUCCEEDED:
            return  # It has served.
        self.begin()
        self._say(f"{self.task.name} serves at {self.address} until training ends")
        monitor = self.chief_monitor()

        def poll_both() -> None:
            poll()
            monitor.poll()

        def answers(trainer: int) -> bool:
            return reason_not_serving(self.cluster.address_of(self._trainers[trainer])) is None

        trainers, say = len(self._trainers), self._say
        shutdown.wait_until_over(
            self.target, self.task.name, trainers, say, poll_both, self.run, answers
        )
        self._lifecycle.end(None)

    def chief_runs(self) -> bool:
        """Whether the chief's port accepts connections, as it does until that process has ended."""
        return reason_unreachable(self.cluster.address_of(self._trainers[0])) is None

    def chief_monitor(self) -> Monitor:
        """Returns what is polled for the chief; see `compat.liveness.identity.chief_check`."""
        check = identity.chief_check(self.cluster, self._roles, self.run)
        chief = self.cluster.describe(self._trainers[0])
        return Monitor({chief: check}, self.rendezvous_timeout, self._say)

    def monitor(self, tasks: Iterable[Task], reason: Callable[[str], str | None]) -> Monitor:
        """Returns a monitor of other tasks by a probe, which gives them up after the timeout."""
        checks = {
            self.cluster.describe(task): functools.partial(reason, self.cluster.address_of(task))
            for task in tasks
            if task != self.task
        }
        return Monitor(checks, self.rendezvous_timeout, self._say)

    def wait_for_peers(self, everybody: bool) -> None:
        """Waits for the parameter servers and the chief or, if it needs them, for `everybody`.

        For a later session the chief need not be there: its variables have their values.
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

        Call it before anything is closed: that takes seconds, after which the peer may be back.
        If the error is retryable, a lost peer, SIGTERM and the like, the serving tasks wait for the
        return of this one: no end is announced to them.
        """
        return self._lifecycle.end(error)

    def announce_end(self) -> None:
        """Tells the serving tasks that this one has done its part; further calls do nothing.

        The end of the process does so by itself. A process that lives on after its last session,
        such as a notebook, may call it; a session that is opened later finds no servers.
        """
        announced = None if self.serves else self._lifecycle.announce()
        if announced is None:
            return
        addresses = {
            task.name: self.cluster.address_of(task)
            for task in all_tasks(self.cluster)
            if roles.role(task, self.cluster, self._roles) is Role.SERVE
        }
        failed = announced is RunState.FAILED
        shutdown.announce(addresses, self.trainer_index, self.run, failed)

    def _announce_at_exit(self, uncaught: BaseException | None) -> None:
        if uncaught is not None:
            self.diagnose(uncaught)
        self.announce_end()
