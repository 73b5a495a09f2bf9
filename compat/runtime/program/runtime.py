"""Runs a program as TensorFlow 1.x does, by graphs and sessions of `tf.compat.v1`."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import numpy as np

from compat._tensorflow import embeddings, private, quietly, saving, tf1
from compat.checkpoint import foreign
from compat.checkpoint.files import writing_graph
from compat.cluster.liveness.cluster import Cluster, call_monitor
from compat.cluster.liveness.departures import updates_together
from compat.cluster.liveness.watchdog import run_with_watchdog
from compat.runtime.graphs.device_placement import filtered
from compat.runtime.interface import MonitoredArguments, Runtime
from compat.runtime.program.monitored import ProgramMonitoredSession, ProgramSingularSession
from compat.runtime.program.replicas import SyncReplicas, last_tokens, queue_runner, tokens
from compat.runtime.program.saver import ProgramSaver
from compat.runtime.program.session import ProgramSession
from compat.runtime.program.step import ProgramStep
from compat.runtime.program.variables import global_step, initial_value
from compat.runtime.run import Run
from compat.runtime.services import variable_name
from compat.runtime.session import Session, Step, StepDefinition


def build_graphs() -> None:
    """Makes this process build graphs, as TensorFlow 1.x does."""
    tf1.disable_eager_execution()
    private.forget_eager_default()
    # The default from 2.0 on. TensorFlow 1.15's own variables have no defined order between an
    # update and a read that follows it; resource variables have one.
    tf1.enable_resource_variables()
    embeddings.gather_rows()
    saving.read_steps_when_due()


class _Restorer:
    """Restores a checkpoint for TensorFlow's session manager, in place of a saver."""

    def __init__(self, run: Run, restored: Any) -> None:
        self._run, self._restored = run, restored

    def restore(self, session: Any, prefix: str) -> None:
        saver = self._run.saver
        with foreign.reported(saver, prefix):
            saver.restore(session, prefix)
        if self._restored is None:
            return
        saved = {variable.op for variable in saver.variables().values()}
        others = [v.initializer for v in tf1.global_variables() if v.op not in saved]
        if others:  # The saver has only some of the variables.
            session.run(others)


def _other_local_values(sync: Any) -> list[Any]:
    """Returns the initializers of tables and of local variables, without the replica's step."""
    step = private.step_of_replicas(sync)
    kept = [v for v in tf1.local_variables() if v is not step]
    makes = [v.initializer for v in kept if v.initializer is not sync.local_step_init_op]
    return [*makes, tf1.tables_initializer()]


class ProgramRuntime(Runtime):
    """Runs the old API on `tf.compat.v1`."""

    saver_class = ProgramSaver
    session_class: Any = ProgramSession

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[Any] = []
        self._first_tokens: Any = None
        self._last_tokens: Any = None

    @contextlib.contextmanager
    def device(self, setter: Any) -> Iterator[None]:
        # None adds nothing, as on the modern runtime; `tf.device(None)` would undo outer devices.
        with tf1.device("" if setter is None or self.server is None else setter):
            yield

    def global_step(self, create: bool = False) -> Any | None:
        existing = global_step()
        if existing is not None or not create:
            return existing
        keys = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.GLOBAL_STEP]
        return tf1.Variable(
            np.int64(0), trainable=False, collections=keys, use_resource=True, name="global_step"
        )

    def step(self, definition: StepDefinition) -> Step:
        shard = 0, 1
        if self.server is not None and not definition.on_coordinator:
            shard = self.server.trainer_index, self.server.num_workers
        self._steps.append(ProgramStep(definition, shard, self._own_device()))
        return self._steps[-1]

    def replicated(self, optimizer: Any, aggregated: int) -> Any:
        assert self.server is not None
        workers, index = self.server.num_workers, self.server.trainer_index
        return SyncReplicas(optimizer, aggregated, workers, index)

    def clear(self) -> None:
        tf1.reset_default_graph()
        self._steps = []

    def worker_variable(self, initial: Any, name: str) -> Any:
        keys = [tf1.GraphKeys.LOCAL_VARIABLES]
        with tf1.device(self._own_device()):
            return tf1.Variable(
                initial, trainable=False, collections=keys, use_resource=True, name=name
            )

    def _own_device(self) -> str | None:
        return self.server.task.name if self.server is not None else ""

    def variables(self) -> dict[str, Any]:
        return {variable.op.name: variable for variable in tf1.global_variables()}

    def default_saver(self) -> Any:
        collected = tf1.get_collection_ref(tf1.GraphKeys.SAVERS)
        if not collected and self.variables():
            collected.append(ProgramSaver())
        return collected[0] if collected else None

    def slices(self) -> dict[str, Any]:
        slices = {name: private.slice_info(v) for name, v in self.variables().items()}
        return {name: part for name, part in slices.items() if part is not None}

    def finish_building(self, run: Run) -> None:
        arguments = dict(run.graph_arguments)
        if run.sync_optimizer is not None:
            sync, is_chief = run.sync_optimizer, run.is_chief
            local = sync.chief_init_op if is_chief else sync.local_step_init_op
            arguments.setdefault("ready_for_local_init_op", sync.ready_for_local_init_op)
            arguments.setdefault("local_init_op", tf1.group(local, *_other_local_values(sync)))
            # Further tokens at the start would make further gradients of the initial weights.
            self._first_tokens = tokens(sync, 0) if is_chief else None
            self._last_tokens = last_tokens(sync, is_chief)
        if isinstance(run.summary_op, Step):
            arguments["summary_op"] = None  # Each call writes its values.
        elif run.summary_op is not Run.USE_DEFAULT:
            arguments["summary_op"] = run.summary_op
        run.recovery.check()  # Reports an unfit checkpoint now.
        if run.graph.finalized:  # Another supervisor has added all operations.
            for name in ("init_op", "local_init_op", "ready_op", "summary_op"):
                if not run.graph.get_collection(getattr(tf1.GraphKeys, name.upper())):
                    arguments.setdefault(name, None)
        with quietly():
            # TensorFlow's supervisor adds operations, a session manager and graph files, and
            # starts no threads here.
            run.own = tf1.train.Supervisor(
                graph=run.graph,
                is_chief=run.is_chief,
                logdir=run.logdir,
                saver=run.saver,
                global_step=run.global_step,
                recovery_wait_secs=run.recovery_wait_secs,
                **arguments,
            )

    def open_session(self, run: Run, target: str, config: Any) -> Session:
        sync, server = run.sync_optimizer, self.server_at(target)
        if server is not None:
            target, config = self.reach(server, target, config, run.graph, sync is not None)
        with quietly():
            session: Any = self.opened(lambda: _prepared(self, run, target, config), server)
            if run.is_chief:
                with writing_graph(run.logdir or ""):
                    private.write_graph(run.own)  # For TensorBoard and `freeze_graph`.
        if sync is not None:
            session.last_operations = [self._last_tokens]
            if run.is_chief:
                runner = queue_runner(sync)
                run.start_queue_runners(session, [runner])
                session.run(self._first_tokens)
                session.last_operations.append(runner.close_op)
        self.begin(session)
        return session

    def reach(
        self, server: Cluster, target: str, config: Any, graph: Any, everybody: bool
    ) -> tuple[str, Any]:
        server.wait_for_peers(everybody)
        departures = server.departures
        # Replicas make no update without their chief.
        if departures is not None and not updates_together(graph):
            departures.enter()  # Before the wait for values, which takes long on a busy machine.
        return target or server.target, filtered(config, server.task.name, graph)

    def waits_for_chief(self, is_chief: bool, target: str) -> bool:
        del target
        return not is_chief

    def global_step_of(self, graph: Any) -> Any | None:
        """Returns the global step of a graph, or None."""
        with graph.as_default():
            return global_step()

    def steps_of(self, graph: Any) -> list[Any]:
        """Returns the steps that are part of a graph."""
        return [step for step in self._steps if step.graph is graph]

    def monitored_session(self, arguments: MonitoredArguments) -> Any:
        graph = tf1.get_default_graph()
        step = global_step()
        if step is not None and not tf1.get_collection(tf1.GraphKeys.GLOBAL_STEP):
            # TensorFlow finds a global step by its name, and would find the variable's handle.
            tf1.add_to_collection(tf1.GraphKeys.GLOBAL_STEP, step)
        kind = ProgramMonitoredSession if arguments.recovers else ProgramSingularSession
        return kind(self, self.steps_of(graph), arguments)

    def opened(self, opening: Callable[[], Any], server: Cluster | None) -> Any:
        if server is None:
            return opening()
        polls = [call_monitor(server, workers=False)]
        if not server.is_chief:  # The session waits for the chief to initialize the variables.
            polls.append(server.chief_monitor().poll)

        def poll() -> None:
            for each in polls:
                each()

        return run_with_watchdog(opening, poll)


def _prepared(runtime: ProgramRuntime, run: Run, target: str, config: Any) -> Any:
    """Returns a session whose variables have values, as TensorFlow's session manager gives them."""
    supervisor, graph, kind = run.own, run.graph, runtime.session_class
    started: list[int] = []

    def init_fn(raw: Any) -> None:
        assert run.init_fn is not None
        run.init_fn(kind.of(raw, run))
        read_step(raw)

    def read_step(raw: Any, tensor: Any = None, feed: Any = None) -> None:
        if run.global_step is not None:
            fetched = run.global_step if tensor is None else tensor
            started.append(int(np.asarray(raw.run(fetched, feed)).item()))  # Of shape [] or [1].

    # Each thread has its own default graph.
    with graph.as_default():
        if runtime.waits_for_chief(run.is_chief, target):
            raw = supervisor.session_manager.wait_for_session(
                target, config=config, max_wait_secs=run.max_wait_secs
            )
        else:
            restored = run.recovery.take()
            newest = run.recovery.newest
            raw = supervisor.session_manager.prepare_session(
                target,
                init_op=supervisor.init_op,
                saver=_Restorer(run, restored) if newest else None,
                checkpoint_filename_with_path=newest,
                config=config,
                init_feed_dict=supervisor.init_feed_dict,
                init_fn=init_fn if run.init_fn is not None else None,
            )
            # Other tasks may update the variables as soon as the chief has initialized them, so the
            # chief begins at the step that it has assigned.
            name = variable_name(run.global_step)
            if restored is not None and name in restored:
                started.append(int(restored[name]))
            elif not (newest or started or "init_op" in run.graph_arguments) and hasattr(
                run.global_step, "initializer"
            ):
                read_step(raw, initial_value(run.global_step), supervisor.init_feed_dict)
        if not started:
            read_step(raw)
        session = kind.of(raw, run, runtime.steps_of(graph))
    session.planned_step = started[0] if started else 0
    return session
