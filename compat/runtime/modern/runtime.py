"""The modern runtime: `ParameterServerStrategy` with `ClusterCoordinator`, TensorFlow 2.4 on."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator, Sequence

import numpy as np

from compat._tensorflow import graph_mode, tf, tf1
from compat.checkpoint.files import writing_graph
from compat.errors import UserError
from compat.runtime.interface import MonitoredArguments, Runtime
from compat.runtime.modern import coordinator, rows
from compat.runtime.modern.all_reduce import Replicas
from compat.runtime.modern.gradient_accumulation import apply_mean
from compat.runtime.modern.hook_graph import HookGraph
from compat.runtime.modern.monitored import ModernMonitoredSession, ModernSingularSession
from compat.runtime.modern.saver import ModernSaver
from compat.runtime.modern.session import ModernSession
from compat.runtime.modern.step import ModernStep
from compat.runtime.modern.variables import Placement
from compat.runtime.run import Run
from compat.runtime.session import Session, Step, StepDefinition


def create() -> Runtime:
    """Returns the runtime of a process with eager execution."""
    os.register_at_fork(after_in_child=_draw_apart)
    return ModernRuntime()


def _draw_apart() -> None:
    """Draws random numbers of TensorFlow: forked tasks go on with those of their parent.

    The runtime has made a graph, which drew the first one. Tasks that are forked later would
    shuffle alike, and give parts of functions the same names, which parameter servers refuse.
    """
    for _ in range(int.from_bytes(os.urandom(2), "little") % 1024):
        tf.Graph()


class ModernRuntime(Runtime):
    """Maps the old API onto a coordinator and its workers, or onto this process alone."""

    name = "modern"
    saver_class = ModernSaver

    def __init__(self) -> None:
        super().__init__()
        graph_mode.answer()
        self.coordinator: Any = None  # None where this process is no coordinator.
        self.replicas: Replicas | None = None  # Of workers that make each update together.
        self.placement = Placement()
        self.hook_graph = HookGraph()
        self._global_step: Any = None
        self._steps: list[ModernStep] = []
        # As in a graph, variables of a process alone count wherever they are made.
        self._anywhere = tf.variable_creator_scope(
            lambda creator, **kwargs: self.placement.create_anywhere(
                self.server is None, creator, **kwargs
            )
        )
        self._anywhere.__enter__()

    @contextlib.contextmanager
    def device(self, setter: Any) -> Iterator[None]:
        if self.server is None or self.server.serves:
            setter = None  # There is nowhere else to place anything.
        elif self.server.synchronous:
            setter = None
            if self.replicas is None:
                self.replicas = Replicas(self.server)
                self._leave_outside()
        elif self.coordinator is None:
            self.coordinator = coordinator.connect(self.server)
            self._leave_outside()
        with self.placement.scope(setter):
            yield

    def _leave_outside(self) -> None:
        """Begins anew: what was made before the cluster is of this process alone."""
        outside = [*self.placement.outside, *self.placement.variables.values()]
        self.placement, self._global_step = Placement(outside), None

    def _check_inside(self, what: str, inside: bool | None = None) -> None:
        if inside is None:
            inside = self.coordinator is not None or self.replicas is not None
        if self.server is not None and not self.server.serves and not inside:
            raise UserError(
                f"{what} was made outside of `with compat.device(...)`, so this task would train "
                "alone; make variables and steps inside it"
            )

    def average(self, tensors: Sequence[Any]) -> list[Any]:
        return list(tensors) if self.replicas is None else self.replicas.average(tensors)

    def apply_mean(self, optimizer: Any, replicas: int, gradients: Any, *args: Any) -> Any:
        if self.replicas is None:
            return apply_mean(optimizer, replicas, gradients, *args)
        found, variables = zip(*[pair for pair in gradients if pair[0] is not None])
        means = self.replicas.average_gradients(found)
        return apply_mean(optimizer, 1, [*zip(means, variables)], *args)

    def global_step(self, create: bool = False) -> Any | None:
        step = self._global_step
        if step is None:
            step = self.placement.variables.get("global_step")
        if create and self._global_step is None:
            self._check_inside("the global step")
            if step is None:
                with self.placement.scope():
                    step = tf.Variable(np.int64(0), name="global_step", trainable=False)
            self._global_step = self.placement.global_step = step
        return step

    def step(self, definition: StepDefinition) -> Step:
        if not definition.on_coordinator:
            self._check_inside("a step")
        made = ModernStep(definition, self)
        for name in () if definition.on_coordinator else made.outside:
            self._check_inside(f"variable {name.rpartition(':')[0]}", inside=False)
        self._steps.append(made)
        return made

    def clear(self) -> None:
        self.placement, self.hook_graph = Placement(), HookGraph()
        self._global_step, self._steps = None, []

    def close_queues(self) -> None:
        """Ends the threads that read the input of steps."""
        for step in self._steps:
            step.close_queues()

    def monitored_session(self, arguments: MonitoredArguments) -> Any:
        kind = ModernMonitoredSession if arguments.recovers else ModernSingularSession
        return kind(self, arguments)

    def worker_variable(self, initial: Any, name: str) -> Any:
        local = [tf1.GraphKeys.LOCAL_VARIABLES]
        with self.placement.local_scope():
            return tf1.Variable(initial, trainable=False, collections=local, name=name)

    def variables(self) -> dict[str, Any]:
        return dict(self.placement.variables)

    def slices(self) -> dict[str, Any]:
        return self.placement.slices()

    def finish_building(self, run: Run) -> None:
        if run.sync_optimizer is not None:
            raise UserError(
                "sync_optimizer needs queues that the modern runtime does not have; use "
                "compat.v1.train.SyncReplicasOptimizer without it, or --runtime=legacy"
            )
        run.recovery.check()  # What is wrong with a checkpoint is reported here already.

    def open_session(self, supervisor: Run, target: str, config: Any) -> Session:
        del target, config  # The strategy knows its workers; options go to the Server.
        self.placement.begin_session(supervisor.is_chief)
        for step in self._steps if self.placement.sessions > 1 else ():
            step.begin_session()
        values = supervisor.recovery.take()
        if values is not None:
            for name, variable in supervisor.saver.variables().items():
                rows.assign(variable, values[name])
        session = ModernSession(self, supervisor)
        if supervisor.init_fn and supervisor.is_chief and not supervisor.recovery.prefixes:
            supervisor.init_fn(session)
        if self.replicas is not None:
            self.replicas.broadcast(list(self.placement.variables.values()))
        if supervisor.logdir and supervisor.writes_graph:
            self._write_graph(supervisor.logdir, supervisor.summary_writer)
        session.begin()
        return session

    def _write_graph(self, folder: str, writer: Any) -> None:
        """Writes the graph of a step that trains, for TensorBoard."""
        graph_def = self.hook_graph.as_graph_def(add_shapes=True)
        with writing_graph(folder):
            tf1.train.write_graph(graph_def, folder, "graph.pbtxt")
        if writer is not None:
            writer.add_graph(self.hook_graph)
