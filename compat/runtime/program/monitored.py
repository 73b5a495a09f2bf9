"""Monitored sessions of TensorFlow that also run the steps of `compat.step`.

In a cluster of `compat.Server`, they wait for the peers before they create or recover a session.
"""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import private, tf1
from compat.checkpoint.io import CheckpointIO
from compat.cluster.liveness.departure_hook import DepartureHook
from compat.cluster.liveness.departures import REPLICAS_GRACE_SECS, updates_together
from compat.errors import is_success
from compat.runtime.interface import MonitoredArguments, Runtime
from compat.runtime.program.replicas import ReplicaHook
from compat.runtime.program.session import recoverable
from compat.runtime.program.step import ProgramStep
from compat.runtime.services import Services


class _Unsupervised:
    """Stands for the supervisor of a session whose hooks write summaries and checkpoints."""

    USE_DEFAULT = summary_op = global_step = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.own = runtime, self
        self.services: Any = Services(self)  # type: ignore[arg-type]


class _Creator:
    """Creates sessions by a session creator of TensorFlow, once the peers are there."""

    def __init__(
        self, runtime: Runtime, steps: Sequence[ProgramStep], arguments: MonitoredArguments
    ) -> None:
        self._runtime, self._steps, self._arguments = runtime, steps, arguments
        self._graph = tf1.get_default_graph()
        self._session: Any = None

    def create_session(self) -> Any:
        """Returns a session whose variables have values, restored ones after a loss."""
        arguments = self._arguments
        server = self._runtime.server_at(arguments.master)
        target, config = arguments.master, arguments.config
        if server is not None:
            target, config = self._runtime.reach(server, target, config, self._graph, False)

        def create() -> Any:
            with self._graph.as_default():  # Each thread has its own default graph.
                if arguments.creator is not None:
                    return self._hooked(arguments.creator.create_session())
                waits = self._runtime.waits_for_chief(arguments.is_chief, target)
                make = self._waited_for if waits else self._prepared
                return self._hooked(make(target, config))

        if self._runtime.hands_out:
            session = self._runtime.opened(create, server)
        else:
            session = recoverable(lambda: self._runtime.opened(create, server))
        self._runtime.begin(session)
        return session

    def _waited_for(self, target: str, config: Any) -> Any:
        """Creates a session as `WorkerSessionCreator` does, but retries every second, not 30."""
        scaffold = self._arguments.scaffold
        scaffold.finalize()
        feed = getattr(scaffold, "local_init_feed_dict", None)  # Since 2.2 or so.
        manager = tf1.train.SessionManager(
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=1,
            **({"local_init_feed_dict": feed} if feed else {}),
        )
        return manager.wait_for_session(target, config, self._arguments.max_wait_secs)

    def _prepared(self, target: str, config: Any) -> Any:
        scaffold, folder = self._arguments.scaffold, self._arguments.checkpoint_dir
        if not self._arguments.is_chief:
            folder = None  # The session gets the chief's values when it begins.
        if scaffold.init_fn:
            scaffold.finalize()
            scaffold = tf1.train.Scaffold(
                copy_from_scaffold=scaffold,
                init_fn=lambda _, raw, original=scaffold: original.init_fn(self._hooked(raw)),
            )
        file = self._arguments.checkpoint_file
        return tf1.train.ChiefSessionCreator(
            scaffold, target, config, folder, file
        ).create_session()

    def _hooked(self, raw: Any) -> Any:
        supervisor = _Unsupervised(self._runtime)
        self._session = self._runtime.session_class.of(raw, supervisor, self._steps, True)
        return self._session

    def close(self) -> None:
        """Closes the newest session."""
        if self._session is not None:
            self._session.close()


class _RunsSteps(private.monitored_base()):  # type: ignore[misc]
    """A mixin, before a monitored session of TensorFlow, that makes the session run steps."""

    def __init__(
        self, runtime: Runtime, steps: Sequence[ProgramStep], arguments: MonitoredArguments
    ) -> None:
        self._runtime, self._lock = runtime, None
        runtime.before_session()
        if arguments.saves:
            self._lock = CheckpointIO(arguments.checkpoint_dir).hold_to_resume()
        savers, saver = tf1.get_collection_ref(tf1.GraphKeys.SAVERS), runtime.default_saver()
        if not savers and saver is not None:
            savers.append(saver)  # A scaffold takes the saver from this collection.
        patience = (
            REPLICAS_GRACE_SECS if updates_together(tf1.get_default_graph()) else float("inf")
        )
        server = runtime.server_at(arguments.master)
        departures = server.departures if server is not None else None
        self._has_served = server is not None and server.serves  # Then the run is over.
        hooks = [] if self._has_served else list(arguments.hooks)
        if departures is not None:  # First, so that the last checkpoint has all updates.
            saves = any(isinstance(hook, tf1.train.CheckpointSaverHook) for hook in hooks)
            hooks.insert(0, DepartureHook(departures, saves))
        for sync in map(private.replicas_of_hook, arguments.hooks):
            if sync is not None and not runtime.hands_out:
                hooks.append(ReplicaHook(sync, arguments.is_chief))
        kind = tf1.train.MonitoredSession
        kind = kind if arguments.recovers else tf1.train.SingularMonitoredSession
        creator = _Creator(runtime, steps, arguments)
        try:
            # Both classes have this base, which takes a creator.
            super(kind, self).__init__(
                creator,
                hooks,
                should_recover=arguments.recovers and not runtime.hands_out,
                stop_grace_period_secs=min(arguments.stop_grace_period_secs, patience),
            )
        except BaseException as error:
            runtime.ended_by(error)
            self._release()
            creator.close()  # A hook has failed.
            raise

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(fetches, ProgramStep):
            return super().run(fetches, *args, **kwargs)
        feed = fetches.feed(args, kwargs.pop("feed_dict", None))
        values = fetches.unpack(*super().run(fetches.outputs, feed, **kwargs))
        return fetches.structured(values)

    def should_stop(self) -> bool:
        return self._has_served or bool(super().should_stop())

    def close(self) -> None:
        self.__exit__(None, None, None)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        exits = is_success(error)
        if exits:  # `sys.exit(0)` is a clean end, also for hooks.
            kind = error = trace = None
        if error is not None and not isinstance(error, (tf1.errors.OutOfRangeError, StopIteration)):
            self._runtime.ended_by(error)
        try:
            return super().__exit__(kind, error, trace) and not exits
        except BaseException as failure:
            self._runtime.ended_by(failure)
            raise
        finally:
            self._release()


class ProgramMonitoredSession(_RunsSteps, tf1.train.MonitoredSession):
    """A `tf.compat.v1.train.MonitoredSession` that also runs steps."""


class ProgramSingularSession(_RunsSteps, tf1.train.SingularMonitoredSession):
    """A `tf.compat.v1.train.SingularMonitoredSession` that also runs steps."""
