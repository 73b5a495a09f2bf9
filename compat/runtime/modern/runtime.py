"""The modern runtime: variables of TensorFlow 2, and a coordinator for steps; TensorFlow 2.4 on."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator, Sequence

from compat._tensorflow import tf
from compat.cluster.liveness.cluster import Cluster
from compat.errors import UserError
from compat.runtime.graphs import session as graphs
from compat.runtime.graphs.cluster import Membership
from compat.runtime.interface import Runtime
from compat.runtime.modern import all_reduce, coordinator
from compat.runtime.modern.gradient_accumulation import apply_mean
from compat.runtime.modern.session import ModernSession
from compat.runtime.modern.step import ModernStep, made_outside
from compat.runtime.program.runtime import ProgramRuntime, build_graphs
from compat.runtime.run import Run
from compat.runtime.session import Step, StepDefinition


def create() -> Runtime:
    """Returns the runtime, and disables eager execution in this process."""
    has_coordinator = tf.executing_eagerly()
    os.register_at_fork(after_in_child=_draw_apart)
    build_graphs()
    graphs.install()
    return ModernRuntime(has_coordinator)


def _draw_apart() -> None:
    """Draws numbers from TensorFlow's generator, so that forked tasks differ from each other.

    Forked tasks inherit the state of the generator, from which the first graph has drawn. So they
    would shuffle alike, and give parts of functions the same names, which parameter servers refuse.
    """
    for _ in range(int.from_bytes(os.urandom(2), "little") % 1024):
        tf.Graph()


class ModernRuntime(ProgramRuntime):
    """Runs the graph of the legacy runtime with variables that TensorFlow 2 stores.

    The coordinator of a cluster schedules steps on workers; a single process runs them itself. If
    workers make each update together, without a parameter server, each has the whole model.
    """

    name = "modern"
    session_class = ModernSession

    def __init__(self, has_coordinator: bool) -> None:
        super().__init__()
        self.has_coordinator = has_coordinator
        self.coordinator: Any = None
        self.replicas: Any = None  # The `Replicas` of workers that make each update together.
        self._scopes = 0  # How many scopes of `device` are open.
        self._averages = False  # Whether `apply_mean` replaces `SyncReplicasOptimizer`.

    def add_server(self, server: Cluster) -> None:
        super().add_server(server)
        assert self.server is not None
        alone = self.server.serves or self.server.synchronous
        self.hands_out = self.has_coordinator and not alone
        if server.synchronous or server.task.job == "ps":
            return
        if self.has_coordinator:
            graphs.join(_Undecided(self, server))
        else:
            _join_as_member(server)

    @contextlib.contextmanager
    def device(self, setter: Any) -> Iterator[None]:
        # Without parameter servers everything is placed on this task.
        has_servers = self.server is not None and not self.server.synchronous
        self._scopes += 1
        try:
            with super().device(setter if has_servers else None):
                yield
        finally:
            self._scopes -= 1

    def global_step(self, create: bool = False) -> Any | None:
        if create and self.hands_out and not self._scopes and super().global_step() is None:
            raise UserError(made_outside("the global step"))
        return super().global_step(create)

    def _own_device(self) -> str | None:
        # None disables the setter, which would place a worker's own variable, and the operations
        # that update it, on a server.
        return None if self.has_coordinator else super()._own_device()

    def step(self, definition: StepDefinition) -> Step:
        if not self.has_coordinator:
            return super().step(definition)
        shard = 0, 1
        if self.server is not None and not definition.on_coordinator:
            self.meet()  # TensorFlow must not trace functions before, such as those of a dataset.
            # Replicas read their own shards; coordinators and serving tasks read none.
            index = self.server.trainer_index if self.server.synchronous else 0
            shard = index, self.server.num_workers
        server = None if definition.on_coordinator else self.server
        hands_out = self.hands_out and server is not None
        is_shared = server is not None and server.synchronous
        self._steps.append(ModernStep(definition, shard, hands_out, is_shared))
        return self._steps[-1]

    def average(self, tensors: Sequence[Any]) -> list[Any]:
        if self.server is None or not self.server.synchronous:
            return list(tensors)
        return all_reduce.average(tensors, self.server.num_workers)

    def apply_mean(self, optimizer: Any, replicas: int, gradients: Any, *args: Any) -> Any:
        if self.server is None or not self.server.synchronous:
            return apply_mean(optimizer, replicas, gradients, *args)
        present, variables = zip(*[pair for pair in gradients if pair[0] is not None])
        means = all_reduce.average_gradients(present, self.server.num_workers)
        return apply_mean(optimizer, 1, [*zip(means, variables)], *args)

    def replicated(self, optimizer: Any, aggregated: int) -> Any:
        if self.has_coordinator:
            self._averages = True
            return Runtime.replicated(self, optimizer, aggregated)
        return super().replicated(optimizer, aggregated)

    def finish_building(self, run: Run) -> None:
        if run.sync_optimizer is not None and self.has_coordinator:
            raise UserError(
                "sync_optimizer needs queues that a coordinator does not have; use "
                "compat.v1.train.SyncReplicasOptimizer without it, or --runtime=legacy"
            )
        super().finish_building(run)

    def before_session(self) -> None:
        server = self.server
        if server is None or server.synchronous or server.task.job == "ps":
            return
        if not self.has_coordinator or self.coordinator is not None or self._steps:
            return
        if self._averages:
            raise UserError(
                "SyncReplicasOptimizer averages the gradients of a compat.step, of which this "
                "program has none; make one, or write `import compat.v1 as tf`"
            )
        self.has_coordinator = self.hands_out = False
        server.run_own_program()
        _join_as_member(server)

    def reach(
        self, server: Cluster, target: str, config: Any, graph: Any, everybody: bool
    ) -> tuple[str, Any]:
        if not self.has_coordinator:
            return super().reach(server, target, config, graph, everybody)
        if server.serves:
            server.join()  # Returns when the run is over.
            graphs.join(graphs.alone)
            return "", config
        self.meet()
        return ("" if server.synchronous else server.target), config

    def meet(self) -> None:
        server = self.server
        if not self.has_coordinator or server is None or server.serves:
            return
        with graphs.eagerly():
            if server.synchronous:
                self.replicas = self.replicas or all_reduce.Replicas(server)
            elif self.coordinator is None:
                self.coordinator = coordinator.connect(server)
                graphs.join(_Coordinating(server))

    def add_local_server(self, target: str) -> None:
        graphs.share_variables(target)

    def waits_for_chief(self, is_chief: bool, target: str) -> bool:
        has_own = self.has_coordinator and not graphs.shares_variables(target)
        return not (is_chief or has_own)

    def begin(self, session: Any) -> None:
        step = self.global_step()
        if self.replicas is not None:
            with session.graph.as_default():
                variables = self.variables()
            names = sorted(variables)
            values = session.read(variables)
            with graphs.eagerly():
                chiefs_values = self.replicas.broadcast([values[name] for name in names])
            session.assign(variables, dict(zip(names, chiefs_values)))
        if step is not None and self.has_coordinator:
            session.planned_step = int(session.read({"step": step})["step"].item())


def _join_as_member(server: Cluster) -> None:
    """Joins a cluster in which each task that trains runs its own program."""
    task = server.task
    membership = Membership(server.cluster.as_dict(), task.job, task.index)
    membership.targets.add(server.target)
    graphs.join(membership)


def _task(server: Cluster) -> str:
    """Returns the device name of this task, such as "/job:worker/replica:0/task:1"."""
    return f"/job:{server.task.job}/replica:0/task:{server.task.index}"


class _Undecided(graphs.Cluster):
    """The cluster of a program without a session, which may still build steps."""

    def __init__(self, runtime: ModernRuntime, server: Cluster) -> None:
        super().__init__(_task(server))
        self._runtime = runtime
        self.targets.add(server.target)

    def before_session(self) -> graphs.Cluster:
        self._runtime.before_session()
        self._runtime.meet()
        joined = graphs.joined()
        return graphs.alone if joined is self else joined  # This process serves.


class _Coordinating(graphs.Cluster):
    """The cluster of a coordinator, whose strategy has connected with all tasks."""

    def __init__(self, server: Cluster) -> None:
        super().__init__(_task(server))
        self.device = "/job:chief/replica:0/task:0/device:CPU:0"
        self.targets.add(server.target)
