"""The server of one task, by which a process becomes a member of the cluster."""

from __future__ import annotations

import functools
from typing import Any, Callable

from compat._tensorflow import startup, tf1
from compat.cluster import access, keepalive, ports, proxies, roles
from compat.cluster.address import split_address
from compat.cluster.liveness import identity
from compat.cluster.liveness.cluster import Cluster
from compat.cluster.roles import Role
from compat.cluster.spec import checked_cluster, only_task
from compat.errors import UserError, raised_as
from compat.runtime.interface import select_runtime


class Server(Cluster):
    """`tf.compat.v1.train.Server` that exits when the run is over and reports lost peers.

    `join` returns when training ends. Tasks may start in any order: each waits for its peers, and
    logs which of them are missing. A port that is in use gives an error of one line.

    Args:
      server_or_cluster_def: a `ClusterSpec` of `compat` or of TensorFlow, a dict of host lists, a
        `ClusterDef`, or a `ServerDef`, which also has defaults for the next four arguments.
      job_name: "ps", "worker", "chief", or another name of a job of the cluster; see
        `compat.cluster.roles`. Defaults to the only job of the cluster.
      task_index: number of the task in its job; defaults to 0 if the job has one task.
      protocol: as in TensorFlow; None means "grpc".
      config: a `ConfigProto` for the server's devices and threads.
      start: False if `start` is to be called later.
      runtime: see `compat.select_runtime`; the choice holds for the whole process.
      rendezvous_timeout: seconds for which this task waits for the tasks that it needs; a task
        that serves needs the chief.
      run_token: a text that distinguishes this run from another one of the same cluster; all
        tasks of a run need the same text.
      allow_network: whether hosts other than this machine are allowed; see
        `compat.cluster.access`.
      say: receives lines about waiting.
      while_waiting: called every few seconds, with the seconds that a call has taken so far, while
        the call needs other tasks and one of them does not answer. An exception that it raises ends
        the wait.

    It has the attributes of `compat.cluster.liveness.cluster.Cluster` too, such as `serves`,
    `is_chief`, `task` and `target`.

    Attributes:
      runtime: name of the runtime, "legacy" or "modern".

    Raises:
      UserError: the cluster or the task is not valid or not allowed, the port is in use, or the
        runtime is not available. As in TensorFlow, the first is also a
        `tf.errors.InvalidArgumentError`, and the error for a port a `tf.errors.UnknownError`.
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
        # The strategy of TensorFlow 2 owns the server of a pure coordinator and of synchronous
        # workers.
        if self.role is not Role.COORDINATE and not self.synchronous:
            self._server = self._make_server()
            self.target = self._server.target
            self.address = self.address if port else self.target[len("grpc://") :]
            if start:
                self.start()
        if roles.is_local(self.cluster):
            chosen.add_local_server(self.target)
            return  # Without peers, the runtime is that of a single process.
        if not self.serves:
            self.announce_at_exit()
        chosen.add_server(self)

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Returns a server that is in no cluster, on a free port of this machine."""
        return Server({"localhost": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self) -> Any:
        """The `ServerDef` of TensorFlow's server; None if a strategy owns the server."""
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
        """Starts the server, unless a strategy starts it; only needed after `start=False`."""
        if self._server is None:
            return
        with startup.without_notes():
            self._server.start()
        if not roles.is_local(self.cluster):
            identity.declare(self.target, self.task, self.run)
