"""The server of one task: what makes a process a member of the cluster."""

from __future__ import annotations

import functools
from typing import Any, Callable

from compat._tensorflow import startup, tf1
from compat.cluster import access, keepalive, ports, proxies, roles
from compat.cluster.address import split_address
from compat.cluster.roles import Role
from compat.cluster.spec import checked_cluster, only_task
from compat.errors import UserError, raised_as
from compat.liveness import identity
from compat.liveness.cluster import Cluster
from compat.runtime.interface import select_runtime


class Server(Cluster):
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

    It has the attributes of `compat.liveness.cluster.Cluster` too, such as `serves`, `is_chief`,
    `task` and `target`.

    Attributes:
      runtime: name of the runtime, "legacy" or "modern".

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
            cluster = checked_cluster(defined)
        task = only_task(cluster, job_name, task_index)
        if task.job == "evaluator":
            raise UserError(
                "an evaluator is in no cluster and has no server; let it read the checkpoints in "
                "the chief's log folder without one"
            )
        super().__init__(
            cluster,
            task,
            chosen.name,
            chosen.has_coordinator,
            rendezvous_timeout=rendezvous_timeout,
            run_token=run_token,
            say=say,
            while_waiting=while_waiting,
        )
        hosts = access.cluster_hosts(self.cluster)
        remedy = "give compat.Server allow_network=True"
        access.check_allowed(hosts, allow_network, remedy=remedy, say=say)
        self._server: Any = None
        proxies.go_past(hosts, say)
        if not all(map(access.is_written_loopback, hosts)):  # This machine is always there.
            keepalive.begin(access.cluster_ports(self.cluster), rendezvous_timeout)
        port = split_address(self.address, any_port=True)[1]
        if port:  # Else the system chooses one.
            ports.release_inherited(port)
            with raised_as(tf1.errors.UnknownError):
                ports.check_free(self.address)
        self._make_server = functools.partial(
            tf1.train.Server,
            self.cluster.as_dict(),
            job_name=self.task.job,
            task_index=self.task.index,
            protocol=protocol or "grpc",
            config=config,
            start=False,
        )
        # The server of a pure coordinator, or of synchronous workers, belongs to their strategy.
        if self.role is not Role.COORDINATE and not self.synchronous:
            self._server = self._make_server()
            self.target = self._server.target
            self.address = self.address if port else self.target[len("grpc://") :]
            if start:
                self.start()
        if roles.is_local(self.cluster):
            chosen.add_local_server(self.target)
            return  # There are no peers, and the runtime is that of a process alone.
        if not self.serves:
            self.announce_at_exit()
        chosen.add_server(self)

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Returns a server that is in no cluster, on a free port of this machine."""
        return Server({"localhost": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self) -> Any:
        """The `ServerDef` of TensorFlow's server; None where that belongs to a strategy."""
        return None if self._server is None else self._server.server_def

    def run_own_program(self) -> None:
        has_served = self.serves
        super().run_own_program()
        if self._server is None:
            self._server = self._make_server()
            self.start()
        if has_served:
            self.announce_at_exit()

    def start(self) -> None:
        """Starts the server, unless its strategy does; only needed after `start=False`."""
        if self._server is None:
            return
        with startup.without_notes():
            self._server.start()
        if not roles.is_local(self.cluster):
            identity.declare(self.target, self.task, self.run)
