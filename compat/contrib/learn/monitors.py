"""`tf.contrib.learn.monitors`, implemented as session hooks."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1


class BaseMonitor(tf1.train.SessionRunHook):
    """Base class of custom monitors."""

    def __init__(self) -> None:
        self._estimator: Any = None
        self._step = 0

    def set_estimator(self, estimator: Any) -> None:
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Called before the first step."""

    def step_begin(self, step: int) -> list[Any]:
        """Called before a step; returns the names of tensors to pass to `step_end`."""
        return []

    def step_end(self, step: int, output: dict[str, Any]) -> bool:
        """Called after a step; returns whether to stop."""
        return False

    def end(self, session: Any = None) -> None:
        """Called after the last step."""

    def before_run(self, run_context: Any) -> Any:
        graph = run_context.session.graph
        fetched = {
            name: graph.as_graph_element(name) if isinstance(name, str) else name
            for name in self.step_begin(self._step + 1) or []
        }
        step = tf1.train.get_global_step(graph)
        return tf1.train.SessionRunArgs({"names": fetched, "step": step})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._step = int(run_values.results["step"])
        if self.step_end(self._step, run_values.results["names"]):
            run_context.request_stop()


class EveryN(BaseMonitor):
    """Monitor with callbacks at the first `first_n_steps` steps, then every `every_n_steps`."""

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every, self._first, self._last = every_n_steps, first_n_steps, 0

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Called before every n-th step; returns the tensors to pass to `every_n_step_end`."""
        return []

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        """Called after every n-th step; returns whether to stop."""
        return False

    def _is_due(self, step: int) -> bool:
        return step <= self._first or step >= self._last + self._every

    def step_begin(self, step: int) -> list[Any]:
        return self.every_n_step_begin(step) if self._is_due(step) else []

    def step_end(self, step: int, output: dict[str, Any]) -> bool:
        if not self._is_due(step):
            return False
        self._last = step
        return bool(self.every_n_step_end(step, output))


class ValidationMonitor(EveryN):
    """Evaluates new checkpoints; stops after `early_stopping_rounds` steps without improvement."""

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(every_n_steps, first_n_steps=-1)
        self._inputs = {"x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size}
        self._options = {"steps": eval_steps, "metrics": metrics, "hooks": hooks, "name": name}
        self._rounds = early_stopping_rounds
        self._metric = early_stopping_metric
        self._sign = 1 if early_stopping_metric_minimize else -1
        self._checkpoint: str | None = None
        self.best_step: int | None = None
        self.best_value: float | None = None
        self.early_stopped = False

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        latest = tf1.train.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._checkpoint:
            return False
        self._checkpoint = latest
        results = self._estimator.evaluate(checkpoint_path=latest, **self._inputs, **self._options)
        tf1.logging.info("Validation (step %d): %s", step, results)
        value = results.get(self._metric)
        if self._rounds is None or value is None:
            return False
        if self.best_value is None or self._sign * (value - self.best_value) < 0:
            self.best_value, self.best_step = value, step
        self.early_stopped = step - (self.best_step or 0) >= self._rounds
        return self.early_stopped


StopAtStep = tf1.train.StopAtStepHook
CheckpointSaver = tf1.train.CheckpointSaverHook


def PrintTensor(tensor_names: Any, every_n: int = 100, first_n: int = 1) -> Any:
    """Returns a hook that logs tensors."""
    return tf1.train.LoggingTensorHook(tensor_names, every_n_iter=every_n)


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[Any]:
    """Returns the monitors, which are hooks, with their estimator set."""
    hooks = list(monitors_or_hooks or [])
    for hook in hooks:
        if hasattr(hook, "set_estimator"):
            hook.set_estimator(estimator)
    return hooks
