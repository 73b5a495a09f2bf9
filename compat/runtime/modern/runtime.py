"""The modern runtime: `ParameterServerStrategy` with `ClusterCoordinator`, TensorFlow 2.4 on."""

from __future__ import annotations

import collections
import contextlib
import functools
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf
from compat.errors import UserError
from compat.liveness.monitor import Watch
from compat.liveness.watchdog import watched
from compat.runtime.interface import Runtime
from compat.runtime.modern import coordinator
from compat.runtime.modern.all_reduce import Replicas
from compat.runtime.modern.lift import Placement
from compat.runtime.modern.step import MOST_UNROLLED, ModernStep
from compat.runtime.session import Session, Step, Values
from compat.supervisor import Supervisor


def create() -> Runtime:
    """Returns the runtime.

    Raises:
      UserError: eager execution is off in this process.
    """
    if not tf.executing_eagerly():
        raise UserError(
            "runtime 'modern' needs eager execution, which this program has disabled; remove "
            "disable_eager_execution() or disable_v2_behavior(), or use --runtime=legacy"
        )
    return ModernRuntime()


class ModernSession(Session):
    """Hands steps to the coordinator and keeps every worker busy."""

    def __init__(self, runtime: ModernRuntime, supervisor: Supervisor) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._flying: collections.deque[Any] = collections.deque()
        self._last: Values = {}
        # One closure at work and one in waiting for each worker.
        self._window = 2 * runtime.server.num_workers if runtime.server is not None else 0
        step = supervisor.global_step
        self.planned_step = 0 if step is None else int(step.numpy())

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("feed_dict") is not None:
            raise UserError(
                "feed_dict needs placeholders, which the modern runtime has not; pass the arrays "
                "behind the step: session.run(step, images, labels)"
            )
        if isinstance(fetches, ModernStep):
            return self.run_many(fetches, *[np.asarray(array)[np.newaxis] for array in args])
        return self._wait(lambda: tf.nest.map_structure(_value, fetches))

    def run_many(self, step: Any, *stacked: Any) -> Values:
        coordinator = self._runtime.coordinator
        count = len(stacked[0]) if stacked else 1
        if step.here or coordinator is None:
            for first in range(0, count, MOST_UNROLLED):
                part = [array[first : first + MOST_UNROLLED] for array in stacked]
                loop = step.loop(min(MOST_UNROLLED, count - first))
                call = functools.partial(loop, *step.arguments(part))
                values = step.unpack(self._wait(call))
            if not step.here:
                self._take(values)
                self.planned_step = int(values.get("global_step", 0))
            return values
        arguments = step.arguments(stacked)
        self.planned_step += count
        # Traced with the first call, and then laid on all servers.
        schedule = functools.partial(coordinator.schedule, step.loop(count), args=arguments)
        self._flying.append((step, self._wait(schedule)))
        # The first call is waited for: it has values to give, and errors come out at once.
        while len(self._flying) > (self._window if self._last else 0):
            self._land()
        return self._last

    def _land(self) -> None:
        step, result = self._flying.popleft()
        self._take(step.unpack(self._wait(result.fetch)))

    def _take(self, values: Values) -> None:
        self._last = values
        self._supervisor.after_training_call(self, values)

    def _wait(self, function: Callable[[], Any]) -> Any:
        """Returns what `function` does, which needs the cluster, or raises if a task is lost."""
        if self._runtime.coordinator is None or self._runtime.server is None:
            return function()
        return watched(function, Watch(self._runtime.server, workers=True))

    def drain(self) -> Iterator[Values]:
        while self._flying:
            self._land()
            yield self._last

    def read(self, variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
        def read() -> dict[str, np.ndarray]:
            return {name: variable.numpy() for name, variable in variables.items()}

        return dict(self._wait(read))

    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        def assign() -> None:
            for name, variable in variables.items():
                variable.assign(values[name])

        self._wait(assign)

    def agree(self, flag: bool) -> bool:
        replicas = self._runtime.replicas
        return flag if replicas is None else replicas.any(flag)

    def leave(self) -> None:
        self.agree(False)  # Together: those who are left would take the first for lost.

    def close(self) -> None:
        self._flying.clear()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            for _ in self.drain():
                pass
        self.close()


def _value(fetch: Any) -> np.ndarray:
    if not hasattr(fetch, "numpy"):
        raise UserError(
            f"the modern runtime cannot run {fetch!r}; pass a compat.step or a variable"
        )
    return np.asarray(fetch.numpy())


class ModernRuntime(Runtime):
    """Maps the old API onto a coordinator and its workers, or onto this process alone.

    Attributes:
      coordinator: the `ClusterCoordinator`, or None where this process is none.
      replicas: what joins workers that make each update together, or None.
      placement: where variables are made.
    """

    name = "modern"

    def __init__(self) -> None:
        super().__init__()
        self.coordinator: Any = None
        self.replicas: Replicas | None = None
        self.placement = Placement()
        self._global_step: Any = None

    @contextlib.contextmanager
    def device(self, setter: Any) -> Iterator[None]:
        if self.server is None or self.server.serves:
            setter = None  # There is nowhere else to place anything.
        elif self.server.synchronous:
            setter = None
            if self.replicas is None:
                self.replicas = Replicas(self.server)
        elif self.coordinator is None:
            self.coordinator = coordinator.connect(self.server)
        with self.placement.scope(setter):
            yield

    def average(self, tensors: Sequence[Any]) -> list[Any]:
        return list(tensors) if self.replicas is None else self.replicas.average(tensors)

    def global_step(self) -> Any | None:
        if self._global_step is None:
            return self.placement.variables.get("global_step")
        return self._global_step

    def create_global_step(self) -> Any:
        if self._global_step is None:
            self._global_step = self.global_step()
            if self._global_step is None:
                with self.placement.scope():
                    self._global_step = tf.Variable(
                        np.int64(0), name="global_step", trainable=False
                    )
            self.placement.global_step = self._global_step
        return self._global_step

    def step(
        self, function: Callable[..., Mapping[str, Any]], signature: Any, resident: Any, here: bool
    ) -> Step:
        return ModernStep(function, signature, resident, self, here)

    def variables(self) -> dict[str, Any]:
        return dict(self.placement.variables)

    def finish_building(self, supervisor: Supervisor) -> None:
        if supervisor.sync_optimizer is not None:
            raise UserError(
                "SyncReplicasOptimizer is not available on the modern runtime, where "
                "parameter-server training is asynchronous; use --runtime=legacy --sync"
            )
        values = supervisor.restored_values()
        if values is not None:
            for name, variable in supervisor.saver.variables().items():
                variable.assign(values[name])

    def open_session(self, supervisor: Supervisor, target: str, config: Any) -> Session:
        del target, config  # The strategy knows its workers; options go to the Server.
        if self.replicas is not None:
            self.replicas.give(list(self.placement.variables.values()))
        return ModernSession(self, supervisor)
