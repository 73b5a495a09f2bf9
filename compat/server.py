"""The server of one task: what makes a process a member of the cluster."""

from __future__ import annotations

import atexit
from typing import Any, Callable

from compat._tensorflow import startup, tf1
from compat.cluster import access, keepalive, ports, proxies
from compat.cluster.address import split_address
from compat.cluster.roles import Role, is_synchronous, num_workers, role, trainers
from compat.cluster.spec import ClusterSpec, Task, all_tasks
from compat.errors import PeerError, UserError, may_pass
from compat.liveness import identity, monitor, rendezvous, shutdown
from compat.runtime.interface import select_runtime

_SERVING = (Role.SERVE, Role.SERVE_AND_COORDINATE, Role.TRAIN, Role.TRAIN_AS_CHIEF)


class Server:
    """`tf.compat.v1.train.Server` that exits when the run is over and reports lost peers.

    `join` returns when the training is over. A port that is in use is said in one line. Peers
    are waited for in any start order, and it is said for whom.

    Args:
      server_or_cluster_def: a `ClusterSpec`, ours or TensorFlow's, or a dict of host lists.
      job_name: "ps", "worker" or "chief".
      task_index: number of the task in its job.
      protocol: as in TensorFlow; None means "grpc".
      config: a `ConfigProto` for the server's devices and threads.
      start: False if `start` is to be called later.
      runtime: see `compat.select_runtime`; chosen here for the whole process.
      rendezvous_timeout: seconds for which this task waits for the tasks it needs; one that
        serves needs the chief.
      run_token: what tells this training from another one with the same cluster; the same text for
        all of its tasks.
      allow_network: whether hosts may be others than this machine; see `compat.cluster.access`.
      say: told about waiting.
      while_waiting: called every few seconds while a call that needs other tasks does not return
        and one of them does not answer, with the seconds that it has taken so far; what it raises,
        ends the waiting.

    Attributes:
      runtime: name of the runtime, "legacy" or "modern".
      task: the `Task` that this process is.
      role: what the task does on this runtime.
      serves: whether the task has nothing to do but `join`.
      is_chief: whether the task writes checkpoints and summaries.
      num_workers: how many workers compute updates.
      synchronous: whether they make each update together; so on the modern runtime, where the
        cluster has no ps.
      target: what a session connects to.
      rendezvous_timeout: seconds for which this task waits for the tasks it needs.
      training: what its tasks have in common; see `compat.liveness.identity`.
      while_waiting: as given.

    Raises:
      UserError: the cluster or the task is not valid or not allowed, the port is in use, or the
        runtime cannot be had.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str = "worker",
        task_index: int = 0,
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
        self.cluster = ClusterSpec(server_or_cluster_def)
        self.task = Task(job_name, task_index)
        self.role = role(self.task, self.cluster, self.runtime)
        hosts = access.cluster_hosts(self.cluster)
        remedy = "give compat.Server allow_network=True"
        access.check_allowed(hosts, allow_network, remedy=remedy, say=say)
        self.serves = self.role is Role.SERVE
        self.is_chief = self.role in (
            Role.TRAIN_AS_CHIEF,
            Role.COORDINATE,
            Role.SERVE_AND_COORDINATE,
        )
        self.num_workers = num_workers(self.cluster, self.runtime)
        self.synchronous = is_synchronous(self.cluster, self.runtime)
        self._trainers = trainers(self.cluster, self.runtime)
        self.rendezvous_timeout = rendezvous_timeout
        self._say = say
        self.while_waiting = while_waiting
        self.training = identity.training(self.cluster, run_token)
        self._server: Any = None
        self.address = self.cluster.task_address(job_name, task_index)
        self.target = "grpc://" + self.address
        proxies.go_past(hosts, say)
        if not all(map(access.is_written_loopback, hosts)):  # This machine is always there.
            keepalive.begin(access.cluster_ports(self.cluster), rendezvous_timeout)
        ports.release_inherited(split_address(self.address)[1])
        ports.check_free(self.address)
        # The server of a pure coordinator, or of synchronous workers, belongs to their strategy.
        if self.role in _SERVING and not self.synchronous:
            self._server = tf1.train.Server(
                self.cluster.as_dict(),
                job_name=job_name,
                task_index=task_index,
                protocol=protocol or "grpc",
                config=config,
                start=False,
            )
            self.target = self._server.target
            if start:
                self.start()
        if not self.serves:
            # Also when the program leaves by an exception, lest the others wait for ever.
            atexit.register(self.announce_end)
        chosen.server = self

    @property
    def trainer_index(self) -> int:
        """Number of this task among those that hand out updates; the chief is 0."""
        return self._trainers.index(self.task)

    @property
    def server_def(self) -> Any:
        """The `ServerDef` of TensorFlow's server; None where that belongs to a strategy."""
        return None if self._server is None else self._server.server_def

    def start(self) -> None:
        """Starts the server; only needed after `start=False`."""
        with startup.without_notes():
            self._server.start()
        identity.declare(self.target, self.task, self.training)

    def join(self, look: Callable[[], None] = lambda: None) -> None:
        """Serves until the training is over.

        Args:
          look: called about twice a second until the chief is done; what it raises ends the wait.

        Raises:
          UserError: the task trains, so that nobody would be left to end the training.
          PeerError: the chief did not come, or has gone and not come back, in time.
        """
        if not self.serves:
            raise UserError(
                f"{self.task.name} trains on the {self.runtime} runtime; call join() only "
                "where server.serves is true"
            )
        self._say(f"{self.task.name} serves at {self.address} until the training is over")
        lookout = self.chief_lookout()

        def look_both() -> None:
            look()
            lookout.look()

        shutdown.wait_until_over(
            self.target,
            self.task.name,
            len(self._trainers),
            say=self._say,
            look=look_both,
            training=self.training,
        )

    def chief_runs(self) -> bool:
        """Whether the chief's port accepts connections, as it does until that process has ended."""
        chief = self._trainers[0]
        address = self.cluster.task_address(chief.job, chief.index)
        return rendezvous.reason_unreachable(address) is None

    def chief_lookout(self) -> rendezvous.Lookout:
        """Returns what looks whether the chief is there, and gives it up after the timeout."""
        look = identity.Recognition(self.cluster, self.runtime, self.training)
        return self.lookout(self._trainers[0], look)

    def lookout(
        self, task: Task, look: Callable[[str], str | None] | None = None
    ) -> rendezvous.Lookout:
        """Returns a check that a task is reachable, which raises after the timeout.

        Args:
          task: of this cluster.
          look: as for `Lookout`.
        """
        return rendezvous.Lookout(
            task.name,
            self.cluster.task_address(task.job, task.index),
            self.rendezvous_timeout,
            self._say,
            look=look,
        )

    def wait_for_peers(self, everybody: bool) -> None:
        """Waits until the tasks that a training task needs can be reached.

        Args:
          everybody: False for asynchronous training on the legacy runtime, where a worker needs
            the parameter servers and the chief, but not the other workers.

        Raises:
          PeerError: some did not come in time; the message names them.
        """
        needed = {
            task.name: task
            for task in all_tasks(self.cluster)
            if (everybody or task.job == "ps" or task == self._trainers[0]) and task != self.task
        }

        # Without parameter servers, the servers start when all tasks have met.
        reason = identity.reason_not_met if self.synchronous else identity.reason_not_member

        def look(name: str, address: str) -> str | None:
            return reason(address, needed[name], self.training)

        rendezvous.wait_for(
            {name: self.cluster.task_address(t.job, t.index) for name, t in needed.items()},
            timeout=self.rendezvous_timeout,
            say=self._say,
            look=look,
        )

    def wait_for_chief(self) -> None:
        """Waits until the chief's server answers, not only its port.

        Raises:
          PeerError: it did not in time.
        """
        chief = self._trainers[0]
        rendezvous.wait_for(
            {chief.name: self.cluster.task_address(chief.job, chief.index)},
            timeout=self.rendezvous_timeout,
            say=self._say,
            look=lambda _, address: rendezvous.reason_not_serving(address),
        )

    def ends_by(self, error: BaseException) -> PeerError | None:
        """Takes the error by which this task ends; returns the lost peer behind it, or None.

        Call it before anything is closed: that takes seconds, after which who was lost may be back.
        If the error may pass, the serving tasks are not told of an end, and wait for this one's
        return: a lost peer, SIGTERM and the like call for a restart.
        """
        if self._error is not error:
            self._error, self._lost = error, monitor.peer_error(error, self.cluster, own=self.task)
        if may_pass(getattr(self._lost or error, "exit_code", 1)):
            self._announced = True
        return self._lost

    def announce_end(self) -> None:
        """Tells the serving tasks that this one has done its part; further calls do nothing."""
        if self.serves or self._announced:
            return
        self._announced = True
        addresses = {}
        for task in all_tasks(self.cluster):
            if role(task, self.cluster, self.runtime) is Role.SERVE:
                addresses[task.name] = self.cluster.task_address(task.job, task.index)
        shutdown.announce(addresses, self.trainer_index, training=self.training)

    _announced = False
    _error: BaseException | None = None
    _lost: PeerError | None = None
