"""The legacy runtime: graphs and sessions of `tf.compat.v1`, on TensorFlow 1.15 to the newest."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import quietly, tf, tf1
from compat.liveness.monitor import Watch
from compat.liveness.watchdog import CLOSE_SECS, closed, delivered, delivering, is_stuck, watched
from compat.runtime.interface import Runtime
from compat.runtime.legacy.step import LegacyStep
from compat.runtime.legacy.variables import assigns, initial_value
from compat.runtime.session import Session, Step, Values
from compat.supervisor import Supervisor

_LAST_TOKENS = 1000  # One is enough for each replica, of which there are fewer.


def create() -> Runtime:
    """Returns the runtime; from here on this process builds graphs."""
    tf1.disable_eager_execution()
    # The default from 2.0 on. The variables of 1.15 may be read before or after an update
    # that stands before the read, as it happens; these have an order.
    tf1.enable_resource_variables()
    return LegacyRuntime()


class LegacySession(Session):
    """A `tf.compat.v1.Session` that also runs steps.

    Attributes:
      raw: TensorFlow's own session.
      last_tokens: run by the chief of replicas when it ends, if it is one.
    """

    def __init__(
        self,
        raw: Any,
        supervisor: Supervisor,
        steps: Sequence[LegacyStep],
        summary: Any,
        first_step: Sequence[Any],
    ) -> None:
        self.raw = raw
        self._supervisor = supervisor
        self._summary = summary
        self.last_tokens: Any = None
        self._trains: dict[tuple[int, ...], bool] = {}
        for step in steps:
            for variable, first, array in step.resident:
                self._call(variable.initializer, {first: array})
        if first_step:
            self.planned_step = int(self._call(*first_step))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(fetches, LegacyStep):
            return self._run_step(fetches, fetches.feed(args))
        if not self._is_training_call(fetches):
            return self._call(fetches, *args, **kwargs)
        # The summary joins the training call: it sees the same feed and takes no queue element.
        if self._summary is not None and self._supervisor.summary_due():
            result, summary = self._call([fetches, self._summary], *args, **kwargs)
            self._supervisor.summary_computed(self, summary)
        else:
            result = self._call(fetches, *args, **kwargs)
        self._supervisor.after_training_call(self, None)
        return result

    def run_many(self, step: Any, *stacked: Any) -> Values:
        values: Values = {}
        for arrays in zip(*stacked) if stacked else [()]:
            values = self._run_step(step, step.feed(arrays))
        return values

    def _run_step(self, step: LegacyStep, feed: dict[Any, Any]) -> Values:
        values = step.unpack(self._call(step.vector, feed))
        if "global_step" in values:
            self.planned_step = int(values["global_step"])
        if self._is_training_call(step.vector):
            self._supervisor.after_training_call(self, values)
        return values

    def _is_training_call(self, fetches: Any) -> bool:
        """Whether running `fetches` counts an update, by the graph: it assigns the global step."""
        if not (self._supervisor.save_summaries_secs or self._supervisor.save_model_secs):
            return False  # Nothing would be due.
        tensors = [
            self.raw.graph.as_graph_element(fetch) if isinstance(fetch, str) else fetch
            for fetch in tf.nest.flatten(fetches)
        ]
        tensors = [t for t in tensors if isinstance(t, (tf.Tensor, tf.Operation))]
        key = tuple(id(tensor) for tensor in tensors)
        if key not in self._trains:
            self._trains[key] = assigns(tensors, self._supervisor.global_step)
        return self._trains[key]

    def drain(self) -> Iterator[Values]:
        return iter(())  # Every call has been waited for.

    def read(self, variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {k: np.asarray(v) for k, v in self._call(dict(variables)).items()}

    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        names = sorted(variables)
        self._call(
            [variables[name].initializer for name in names],
            {initial_value(variables[name]): values[name] for name in names},
        )

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Does what `tf.compat.v1.Session.run` does, or raises if a parameter server is lost."""

        def call() -> Any:
            return delivered(lambda: self.raw.run(*args, **kwargs))

        server = self._supervisor.runtime.server
        return call() if server is None else watched(call, Watch(server, workers=False))

    def close(self) -> None:
        # A call that was left behind waits for a lost parameter server: so would this one.
        closed(self._close, patience=0.0 if is_stuck() else CLOSE_SECS)

    def leave(self) -> None:
        # Replicas wait for an update of their chief, which makes no more: with these they go on.
        tokens, self.last_tokens = self.last_tokens, None
        if tokens is not None:
            self.raw.run(tokens)

    def _close(self) -> None:
        for step in (self.leave, self.raw.close):
            with contextlib.suppress(tf1.errors.OpError):  # What was lost was said by a call.
                step()


def _first_tokens(sync: Any) -> Any:
    """Returns what lets replicas make the gradients of the first update.

    Each makes one without a token. With TensorFlow's number of them they would make another one,
    of the first weights again, that comes too late and is dropped, or takes another's place.
    """
    try:
        return sync.get_init_tokens_op(0)
    except ValueError:  # More gradients are aggregated than there are replicas.
        return sync.get_init_tokens_op()


def _first_step(supervisor: Supervisor, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the arguments of the call that gives the step from which this task goes on, if any.

    A chief gives the variables their values, and others may have made updates of them by the time
    it could read one; so it reads what it gave.

    Args:
      supervisor: ours, of this task.
      arguments: those of TensorFlow's own.
    """
    if supervisor.global_step is None:
        return ()
    if supervisor.is_chief and "init_op" not in arguments:
        return (initial_value(supervisor.global_step), arguments.get("init_feed_dict"))
    return (supervisor.global_step,)


def _merged_summary(supervisor: Supervisor) -> Any | None:
    """Returns the summary tensor that training calls fetch when one is due."""
    summary = supervisor.summary_op
    if isinstance(summary, Step):
        return None  # Its values are written as they come.
    return tf1.summary.merge_all() if summary is Supervisor.USE_DEFAULT else summary


class LegacyRuntime(Runtime):
    """Maps the old API onto `tf.compat.v1`, which is where it comes from."""

    name = "legacy"

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[LegacyStep] = []
        self._own: Any = None
        self._summary: Any = None
        self._first_step: tuple[Any, ...] = ()

    def device(self, setter: Any) -> ContextManager[None]:
        return tf1.device(setter if self.server is not None else None)

    def create_global_step(self) -> Any:
        existing = tf1.train.get_global_step()
        if existing is not None:
            return existing
        collections = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.GLOBAL_STEP]
        return tf1.Variable(
            np.int64(0),
            name="global_step",
            trainable=False,
            use_resource=True,
            collections=collections,
        )

    def step(
        self, function: Callable[..., Mapping[str, Any]], signature: Any, resident: Any, here: bool
    ) -> Step:
        del here  # All do.
        device = self.server.task.name if self.server is not None else ""
        step = LegacyStep(function, signature, resident, device)
        self._steps.append(step)
        return step

    def variables(self) -> dict[str, Any]:
        return {variable.op.name: variable for variable in tf1.global_variables()}

    def finish_building(self, supervisor: Supervisor) -> None:
        arguments = dict(supervisor.graph_arguments)
        if supervisor.sync_optimizer is not None:
            sync = supervisor.sync_optimizer
            arguments.setdefault("ready_for_local_init_op", sync.ready_for_local_init_op)
            arguments.setdefault(
                "local_init_op",
                sync.chief_init_op if supervisor.is_chief else sync.local_step_init_op,
            )
            if supervisor.is_chief:
                self._tokens = [_first_tokens(sync), sync.get_init_tokens_op(_LAST_TOKENS)]
        values = supervisor.restored_values()
        if values is not None:
            # Restoring *is* initialising with other values: so nobody can see the variables
            # ready before they have them.
            feed = dict(arguments.get("init_feed_dict") or {})
            for name, variable in supervisor.saver.variables().items():
                feed[initial_value(variable)] = values[name]
            arguments["init_feed_dict"] = feed
        self._first_step = _first_step(supervisor, arguments)
        self._summary = _merged_summary(supervisor)  # Now: the next lines finalize the graph.
        # TensorFlow's own saver and summaries are off: they would run on threads of their own.
        with quietly():
            self._own = tf1.train.Supervisor(
                is_chief=supervisor.is_chief,
                logdir=None,
                saver=None,
                summary_op=None,
                global_step=supervisor.global_step,
                **arguments,
            )

    def _opened(self, opening: Callable[[], Any]) -> Any:
        """Returns what `opening` does; raises where it would wait for a lost peer for ever."""
        server = self.server
        if server is None:
            return opening()
        # It is the chief who gives the variables their values.
        lookout = None if server.is_chief else server.chief_lookout()
        parameter_servers = Watch(server, workers=False)

        def check() -> None:
            parameter_servers()
            if lookout is not None:
                lookout.look()

        return watched(opening, check)

    def open_session(self, supervisor: Supervisor, target: str, config: Any) -> Session:
        sync = supervisor.sync_optimizer
        if self.server is not None:
            self.server.wait_for_peers(everybody=sync is not None)
            target = target or self.server.target
            config = config or tf1.ConfigProto()
            if not config.device_filters:
                # Workers need only the ps, replicas too, whose queues are there; without this a
                # session hangs whose chief has ended before, or that has lost another worker.
                config.device_filters.extend(["/job:ps", self.server.task.name])
        with quietly():
            raw = self._opened(
                lambda: self._own.prepare_or_wait_for_session(
                    target, config=config, start_standard_services=False
                )
            )
        raw.make_callable = delivering(raw.make_callable)
        session = LegacySession(raw, supervisor, self._steps, self._summary, self._first_step)
        supervisor.start_queue_runners(session)
        if sync is not None and supervisor.is_chief:
            supervisor.start_queue_runners(session, [sync.get_chief_queue_runner()])
            first, session.last_tokens = self._tokens
            raw.run(first)
        return session
