"""A session of the program's graph: TensorFlow's own, which also runs steps."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf, tf1
from compat.cluster.liveness.cluster import call_monitor
from compat.cluster.liveness.watchdog import (
    CLOSE_SECS,
    close_session,
    is_stuck,
    retry_duplicate_rpc,
    retrying,
    run_with_watchdog,
)
from compat.errors import PeerError, ReplicaError, is_success
from compat.runtime.graphs.nodes import fetched
from compat.runtime.program.replicas import adds_gradients
from compat.runtime.program.step import ProgramStep
from compat.runtime.program.variables import assignments, needs_feed, takes_input, trains
from compat.runtime.session import Session, Values, number_of_updates


def recoverable(function: Callable[[], Any]) -> Any:
    """Calls `function`; converts a `PeerError` to an error that monitored sessions recover from.

    A `ReplicaError` stays as it is. The chief's session closes the queue of tokens, which lasts as
    long as its server, so a new session would end as if the data had ended.
    """
    try:
        return function()
    except ReplicaError:
        raise
    except PeerError as error:
        raise tf1.errors.UnavailableError(None, None, str(error)) from error


def _is_end(error: BaseException | None) -> bool:
    """Whether a program that leaves its session by an error, or by none, has ended its training."""
    return error is None or is_success(error) or isinstance(error, tf1.errors.OutOfRangeError)


_RUN = ("feed_dict", "options", "run_metadata")  # The arguments of a session's `run`.


class ProgramSession(tf1.Session, Session):
    """A `tf.compat.v1.Session` that also runs steps; created by `of`."""

    _is_dropped = False
    _has_hooks = False

    @classmethod
    def of(
        cls, raw: Any, supervisor: Any, steps: Sequence[ProgramStep] = (), has_hooks: bool = False
    ) -> ProgramSession:
        """Converts the session `raw` of TensorFlow's session manager to this class.

        `has_hooks` means that a monitored session of TensorFlow runs this session. It adds the
        fetches of hooks, and creates a new session after a call that cannot return.
        """
        if not isinstance(raw, cls):
            raw.__class__ = cls  # The session manager has no argument for a class.
            raw.make_callable = retrying(raw)
        session: ProgramSession = raw
        session._has_hooks = has_hooks
        session._begin(supervisor, steps)
        return session

    def _begin(self, supervisor: Any, steps: Sequence[ProgramStep]) -> None:
        self._supervisor, self._steps = supervisor, steps
        self._summary = supervisor.own.summary_op
        self.last_operations: list[Any] = []  # Operations of a synchronous replica at its end.
        self.planned_step = 0
        self._training: dict[tuple[Any, ...], bool] = {}  # By the operations of the fetches.
        self._variables = {v.op: v for v in [*tf1.global_variables(), *tf1.local_variables()]}
        for step in steps:
            for variable, first, array in step.per_worker_data:
                self.call(variable.initializer, {first: array})
            self.restart(step)

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if self._has_hooks and isinstance(fetches, dict):
            # A dict with hooks as keys, which TensorFlow cannot sort.
            fed = {getattr(key, "name", key) for key in kwargs.get("feed_dict") or ()}
            named = {key: self._of_names(self._fed(f, fed)) for key, f in fetches.items()}
            return self.call(named, *args, **kwargs)
        if isinstance(fetches, ProgramStep):
            feed = fetches.feed(args, kwargs.pop("feed_dict", None))
            return self._run_step(fetches, feed, **kwargs)
        fetches = self._of_names(fetches)
        if "feed_dict" in kwargs or args:
            args, kwargs = (), {**dict(zip(_RUN, args)), **kwargs}
            kwargs["feed_dict"] = self._of_specs(kwargs.get("feed_dict"))
        if not self._is_training_call(fetches):
            return self.call(fetches, *args, **kwargs)
        if self._is_summary_due(*args, **kwargs):
            # The summary joins the training call: same feed, and no queue element of its own.
            result, summary = self.call([fetches, self._summary], *args, **kwargs)
            self._supervisor.summary_computed(self, summary)
        else:
            result = self.call(fetches, *args, **kwargs)
        self._supervisor.services.after_training_call(self, None)
        return result

    def run_many(self, step: Any, *stacked: Any, count: int | None = None) -> Values:
        values: Values = {}
        count = number_of_updates(stacked, count)
        done = 0
        while done < count:
            # The summary is that of the first update after it became due.
            due = self._supervisor.services.summary_due()
            chain = None if due else step.chain(stacked)
            number = 1 if chain is None else chain.size(count - done)
            try:
                if chain is not None and number > 1:
                    outputs = chain.outputs(number)
                    feed = chain.feed([array[done : done + number] for array in stacked])
                    values = self._run_step(step, feed, outputs)
                else:
                    values = self._run_step(step, step.feed([array[done] for array in stacked]))
            except tf1.errors.OutOfRangeError:
                if not values:
                    raise
                break
            done += number
            step.made += number
            if self.on_updates is not None and self._trains(step.outputs):
                self.on_updates(None, number * step.definition.updates, values)
        return values

    def _run_step(
        self, step: ProgramStep, feed: dict[Any, Any], outputs: Any = None, **kwargs: Any
    ) -> Values:
        """Runs a step, or several copies of it; `outputs` are those of the last copy."""
        trains = self._is_training_call(step.outputs)
        services, default = self._supervisor.services, self._supervisor.USE_DEFAULT
        collects = step.summary is not None and self._supervisor.summary_op is default
        summary = None
        if outputs is None and trains and collects and services.summary_due():
            *results, summary = self.call([*step.outputs, step.summary], feed, **kwargs)
        else:
            results = self.call(outputs or step.outputs, feed, **kwargs)
        values = step.unpack(*results)
        if "global_step" in values:
            self.planned_step = int(values["global_step"])
        if trains:
            services.after_training_call(self, values, summary, collects)
        return step.structured(values)

    def restart(self, step: Any) -> None:
        if step.iterator is not None:
            self.call(step.iterator.initializer)

    def summarize(self) -> None:
        """Writes a summary now, unless only a training call can compute it."""
        if self._summary is not None and not (
            needs_feed(self._summary, ()) or takes_input(self._summary)
        ):
            self._supervisor.summary_computed(self, self.call(self._summary))

    def _fed(self, fetches: Any, fed: Collection[str]) -> Any:
        """Replaces, in fetches, the merged summaries of all steps by those of the fed step."""

        def of_step(fetch: Any) -> Any:
            is_merged = getattr(getattr(fetch, "op", None), "type", "") == "MergeSummary"
            if not (is_merged and needs_feed(fetch, fed)):
                return fetch
            summaries = (step.summary for step in self._steps if step.summary is not None)
            return next((tensor for tensor in summaries if not needs_feed(tensor, fed)), fetch)

        return tf.nest.map_structure(of_step, fetches)

    def _of_names(self, fetches: Any) -> Any:
        """Replaces names such as "weight:0" in fetches by the variable, not by its handle."""

        def is_handle(fetch: Any) -> bool:
            return isinstance(fetch, tf.Tensor) and fetch.dtype == tf.resource

        def of_name(fetch: Any) -> Any:
            element = self.graph.as_graph_element(fetch) if isinstance(fetch, str) else fetch
            return self._variables.get(element.op, element) if is_handle(element) else element

        if any(isinstance(fetch, str) or is_handle(fetch) for fetch in tf.nest.flatten(fetches)):
            return tf.nest.map_structure(of_name, fetches)
        return fetches

    def _of_specs(self, feed_dict: Any) -> Any:
        """Replaces the `tf.TensorSpec`s of steps in a feed by their placeholders."""
        placeholders = {
            spec.name: placeholder
            for step in self._steps
            for spec, placeholder in zip(step.definition.signature, step.placeholders)
        }

        def of_spec(key: Any) -> Any:
            name = key.name if isinstance(key, tf.TensorSpec) else key
            return placeholders.get(name, key) if isinstance(name, str) else key

        return feed_dict and {of_spec(key): value for key, value in feed_dict.items()}

    def _is_summary_due(self, feed_dict: Any = None, *_: Any, **__: Any) -> bool:
        if self._summary is None or not self._supervisor.services.summary_due():
            return False
        # Other keys of a feed than tensors and names are composite tensors.
        fed = [key for key in feed_dict or () if isinstance(key, (str, tf.Tensor))]
        names = {self.graph.as_graph_element(key).name for key in fed}
        return not needs_feed(self._summary, names)

    def _is_training_call(self, fetches: Any) -> bool:
        """Whether running `fetches` trains, so that services may be due after it."""
        return self._supervisor.services.running and self._trains(fetches)

    def _trains(self, fetches: Any) -> bool:
        """Whether running `fetches` updates the global step or, without one, the model.

        Of synchronous replicas, a thread of the chief makes the update for which the call waits.
        """
        operations = tuple(fetched(fetches))
        if operations not in self._training:
            step = self._supervisor.global_step
            with self.graph.as_default():
                counted = tf1.trainable_variables() if step is None else [step]
            self._training[operations] = trains(operations, counted) or adds_gradients(operations)
        return self._training[operations]

    def drain(self) -> Iterator[Values]:
        return iter(())  # Every call has returned its values.

    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        for operations, feed in assignments(variables, values):
            self.call(operations, feed)

    def call(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls `tf.compat.v1.Session.run`; raises `PeerError` if a task that it needs is lost."""
        run = functools.partial(tf1.Session.run, self, fetches, *args, **kwargs)
        return self.watched(run, functools.partial(adds_gradients, fetches))

    def watched(
        self, call: Callable[[], Any], waits_for_replicas: Callable[[], bool] = lambda: False
    ) -> Any:
        """Calls a function that runs operations in this session; raises errors as `call` does."""
        retried = functools.partial(retry_duplicate_rpc, call)
        server = self._supervisor.runtime.server
        if server is None:
            return retried()
        poll = call_monitor(server, False, self.check_overdue, waits_for_replicas)
        return self._recoverable(lambda: run_with_watchdog(retried, poll))

    def _recoverable(self, function: Callable[[], Any]) -> Any:
        return recoverable(function) if self._has_hooks else function()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if _is_end(error):
            self.leave()
        super().__exit__(kind, error, trace)

    def __del__(self) -> None:
        self._is_dropped = True
        super().__del__()

    def close(self) -> None:
        if self._is_dropped:  # Python may be exiting, and then starts no thread.
            tf1.Session.close(self)
            return
        if not _is_end(sys.exc_info()[1]):
            # If this replica is started again, it needs its token, and a chief needs the queue.
            self.last_operations = []
        # A call that was left behind waits for a lost parameter server, and so would this call.
        close_session(self._close, patience=0.0 if is_stuck() else CLOSE_SECS)

    def leave(self) -> None:
        # The others would wait for the gradients of this replica, or for its tokens if it is the
        # chief, which makes the updates. These tokens release them.
        operations, self.last_operations = self.last_operations, []
        # If the parameter server is lost, so are the others.
        with contextlib.suppress(tf1.errors.OpError, PeerError):
            for operation in operations:
                self.call(operation)

    def _close(self) -> None:
        if self.last_operations and self._supervisor.is_chief:
            self.leave()
        with contextlib.suppress(tf1.errors.OpError):
            tf1.Session.close(self)
