"""TensorFlow's monitored session on a coordinator: its hooks fetch what the workers return."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.checkpoint.io import CheckpointIO
from compat.errors import UserError, is_success
from compat.runtime.interface import MonitoredArguments
from compat.runtime.modern.hook_graph import HookGraph, eagerly
from compat.runtime.modern.session import NO_PLACEHOLDERS, ModernSession
from compat.runtime.modern.step import ModernStep
from compat.runtime.session import Values
from compat.supervisor import Supervisor

if TYPE_CHECKING:
    from compat.runtime.modern.runtime import ModernRuntime

_ONLY_GRAPHS = (
    "init_op",
    "init_feed_dict",
    "ready_op",
    "ready_for_local_init_op",
    "local_init_op",
    "local_init_feed_dict",
)


class _Call:
    """A step, and the arrays that it is run on."""

    def __init__(self, step: ModernStep, arrays: Any = ()) -> None:
        self.step, self.arrays = step, arrays


class _HookedSession:
    """What TensorFlow's monitored session takes for a session: runs steps, and what hooks add."""

    sess_str = ""

    def __init__(self, graph: HookGraph, session: ModernSession) -> None:
        self.graph, self.session = graph, session

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs at most one step; returns what is fetched, in the structure of `fetches`."""
        del run_metadata
        if feed_dict:
            raise UserError(NO_PLACEHOLDERS)
        if options is not None and options.ByteSize():
            raise UserError(
                "RunOptions, such as the trace that ProfilerHook asks for, need a TensorFlow "
                "session, which the modern runtime does not have; use --runtime=legacy"
            )
        return eagerly(lambda: self._run(fetches))

    def _run(self, fetches: Any) -> Any:
        # Of a monitored session the keys are hooks, which cannot be sorted.
        parts = fetches if isinstance(fetches, dict) else {"": fetches}
        flat = [leaf for part in parts.values() for leaf in tf.nest.flatten(part)]
        values = iter(self._values([self._named(leaf) for leaf in flat]))
        found = {
            key: tf.nest.pack_sequence_as(part, [next(values) for _ in tf.nest.flatten(part)])
            for key, part in parts.items()
        }
        return found if isinstance(fetches, dict) else found[""]

    def _named(self, fetch: Any) -> Any:
        if isinstance(fetch, ModernStep):
            return _Call(fetch)
        return self.graph.as_graph_element(fetch) if isinstance(fetch, str) else fetch

    def _values(self, fetches: Sequence[Any]) -> list[Any]:
        """Returns what each of the fetches gives: a step, a tensor for hooks, or a variable."""
        calls = [fetch for fetch in fetches if isinstance(fetch, _Call)]
        if len(calls) > 1:
            raise UserError(f"run() was given {len(calls)} steps; run one after the other")
        tensors = [fetch for fetch in fetches if getattr(fetch, "graph", None) is self.graph]
        known = set(map(id, calls + tensors))
        variables = [fetch for fetch in fetches if id(fetch) not in known]
        needed = self.graph.needs(tensors)
        given = {self.graph.step_op: self.session.planned_step}
        found = {id(call): self._call(call, needed, given) for call in calls}
        read = {op: v for op, v in self.graph.variables.items() if op in needed}
        if variables or read:
            self.drain()
            values = self.session.run(variables)
            found.update(zip(map(id, variables), [value[()] for value in values]))
            given.update(zip(read, self.session.run(list(read.values()))))
        found.update(zip(map(id, tensors), self.graph.evaluate(tensors, needed, given)))
        return [found[id(fetch)] for fetch in fetches]

    def _call(self, call: _Call, needed: set[Any], given: dict[Any, Any]) -> Values:
        """Runs a step; adds what hooks need of it to what is given."""
        step = call.step
        names = [name for name, tensor in step.tensors.items() if tensor.op in needed]
        summary = step.summarizes and step.summary.op in needed
        made = step.fetching(names)
        if not (names or summary):
            return self.session.run(made, *call.arrays)
        outcome = self.session.run_now(made, *call.arrays, summary=summary)
        given.update((step.tensors[name].op, outcome.values[name]) for name in names)
        if summary:
            given[step.summary.op] = outcome.summary
        return step.structured(outcome.values)

    def drain(self) -> None:
        """Waits for all that was scheduled."""
        collections.deque(self.session.drain(), maxlen=0)

    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        """Gives the variables the values of the same names; for a saver that restores."""
        self.drain()
        self.session.assign(variables, values)

    def read(self, variables: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        """Returns the values of variables after all that was scheduled; for a saver that saves."""
        self.drain()
        return self.session.read(variables)

    def close(self) -> None:
        """Frees what the session holds."""
        self.session.close()


class _RunsSteps(private.monitored_base()):  # type: ignore[misc]
    """What a monitored session of TensorFlow's needs for workers to run its steps."""

    _hooked: Any = None

    def __init__(self, runtime: ModernRuntime, arguments: MonitoredArguments) -> None:
        self._runtime, self._arguments = runtime, arguments
        graph = self._hook_graph = runtime.hook_graph
        scaffold, server = arguments.scaffold, runtime.server
        for name in _ONLY_GRAPHS:
            piece = getattr(scaffold, name, None)
            if piece is not None and getattr(piece, "graph", None) is not graph:
                raise UserError(
                    f"Scaffold({name}=...) needs a graph of the program, which the modern runtime "
                    "does not have; set values in init_fn, or use --runtime=legacy"
                )
        if arguments.checkpoint_file is not None:
            raise UserError(
                f"checkpoint_filename_with_path={arguments.checkpoint_file!r} needs a graph, which "
                "the modern runtime does not have; give checkpoint_dir=, whose newest checkpoint "
                "is restored, or restore it by a compat.Saver in Scaffold(init_fn=...)"
            )
        if arguments.creator is not None:
            raise UserError(
                f"session_creator={arguments.creator!r} makes sessions of TensorFlow, which the "
                "modern runtime does not have; pass a compat.ChiefSessionCreator or a "
                "compat.WorkerSessionCreator, or use --runtime=legacy"
            )
        if arguments.config is not None:
            tf1.logging.warning("config= has no effect on the modern runtime; see compat.Server")
        savers = graph.get_collection_ref(tf1.GraphKeys.SAVERS)
        self._lock = None
        if arguments.saves:
            self._lock = CheckpointIO(arguments.checkpoint_dir).hold_to_resume()
        self._supervisor = Supervisor(
            is_chief=arguments.is_chief,
            logdir=arguments.checkpoint_dir,
            saver=scaffold.saver or next(iter(savers), Supervisor.USE_DEFAULT),
            summary_op=None,
            summary_writer=None,
            save_model_secs=0,  # A hook does, if anything.
            stop_grace_secs=arguments.stop_grace_period_secs,
            init_fn=scaffold.init_fn,
        )
        self._supervisor.writes_graph = False  # The hook that saves does.
        graph.add_variables(runtime.variables(), runtime.global_step())
        serves = server is not None and server.serves
        hooks = [] if serves else arguments.hooks  # The run is over when it has served.
        try:
            with graph.as_default():
                if not savers and self._supervisor.saver is not None:
                    savers.append(self._supervisor.saver)
                kind = tf1.train.MonitoredSession
                kind = kind if arguments.recovers else tf1.train.SingularMonitoredSession
                # No loss can be recovered in this process.
                super(kind, self).__init__(
                    self,
                    hooks,
                    should_recover=False,
                    stop_grace_period_secs=arguments.stop_grace_period_secs,
                )
        except BaseException as error:
            runtime.ended_by(error)
            self._release()
            if self._hooked is not None:  # It is a hook that has failed.
                self._hooked.close()
            raise

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def create_session(self) -> Any:
        """Returns a session whose variables have values; called by TensorFlow's."""
        arguments = self._arguments
        arguments.scaffold.finalize()
        session = eagerly(
            lambda: self._supervisor.prepare_or_wait_for_session(
                arguments.master,
                max_wait_secs=arguments.max_wait_secs,
                start_standard_services=False,
            )
        )
        self._hooked = _HookedSession(self._hook_graph, session)
        return self._hooked

    def run(self, fetches: Any, *arrays: Any, **kwargs: Any) -> Any:
        if isinstance(fetches, ModernStep):
            given = fetches.given(arrays, kwargs.pop("feed_dict", None))
            fetches, arrays = _Call(fetches, given), ()
        with self._hook_graph.as_default():  # Hooks ask it for the global step.
            return super().run(fetches, *arrays, **kwargs)

    def should_stop(self) -> bool:
        return self._supervisor.should_stop() or bool(super().should_stop())

    def close(self) -> None:
        self.__exit__(None, None, None)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        exits = is_success(error)
        if exits:  # Hooks see a clean end.
            kind = error = trace = None
        clean = error is None or isinstance(error, (tf1.errors.OutOfRangeError, StopIteration))
        try:
            if error is not None and not clean:
                self._runtime.ended_by(error)
            else:
                self._hooked.drain()  # Its errors are the run's; TensorFlow ignores them below.
            with self._hook_graph.as_default():
                suppressed = super().__exit__(kind, error, trace)
            if clean:
                self._hooked.session.leave()
            return suppressed and not exits
        except BaseException as failure:
            self._runtime.ended_by(failure)
            raise
        finally:
            self._release()
            self._supervisor.stop()


class ModernMonitoredSession(_RunsSteps, tf1.train.MonitoredSession):
    """A `tf.compat.v1.train.MonitoredSession` whose steps workers run."""


class ModernSingularSession(_RunsSteps, tf1.train.SingularMonitoredSession):
    """A `tf.compat.v1.train.SingularMonitoredSession` whose steps workers run."""

    def raw_session(self) -> ModernSession:
        """Returns the session that hooks do not see."""
        return self._hooked.session
