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
        """Sets the estimator that is trained."""
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Called before the first step."""
        del max_steps

    def step_begin(self, step: int) -> list[Any]:
        """Called before a step; returns the names of tensors to pass to `step_end`."""
        del step
        return []

    def step_end(self, step: int, output: dict[str, Any]) -> bool:
        """Called after a step; returns whether to stop."""
        del step, output
        return False

    def end(self, session: Any = None) -> None:
        """Called after the last step."""
        del session

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
    """Monitor with callbacks at every n-th step.

    Args:
      every_n_steps: interval in steps.
      first_n_steps: number of first steps with callbacks at each.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every, self._first, self._last = every_n_steps, first_n_steps, 0

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Called before such a step; returns the tensors to pass to `every_n_step_end`."""
        del step
        return []

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        """Called after such a step; returns whether to stop."""
        del step, outputs
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
    """Evaluates each new checkpoint during training, and may stop training early.

    Args:
      x: see `Estimator.evaluate`.
      y: see `Estimator.evaluate`.
      input_fn: see `Estimator.evaluate`.
      batch_size: see `Estimator.evaluate`.
      eval_steps: see `Estimator.evaluate`.
      every_n_steps: interval at which to check for a new checkpoint, in steps.
      metrics: see `Estimator.evaluate`.
      hooks: hooks of the evaluation.
      early_stopping_rounds: number of steps without improvement after which training stops.
      early_stopping_metric: name of the metric.
      early_stopping_metric_minimize: whether lower is better.
      name: see `Estimator.evaluate`.
    """

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
        self._options = {
            "x": x,
            "y": y,
            "input_fn": input_fn,
            "batch_size": batch_size,
            "steps": eval_steps,
            "metrics": metrics,
            "hooks": hooks,
            "name": name,
        }
        self._rounds = early_stopping_rounds
        self._metric = early_stopping_metric
        self._sign = 1 if early_stopping_metric_minimize else -1
        self._checkpoint: str | None = None
        self.best_step: int | None = None
        self.best_value: float | None = None
        self.early_stopped = False

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        del outputs
        latest = tf1.train.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._checkpoint:
            return False
        self._checkpoint = latest
        found = self._estimator.evaluate(checkpoint_path=latest, **self._options)
        tf1.logging.info("Validation (step %d): %s", step, found)
        value = found.get(self._metric)
        if self._rounds is None or value is None:
            return False
        if self.best_value is None or self._sign * (value - self.best_value) < 0:
            self.best_value, self.best_step = value, step
        self.early_stopped = step - (self.best_step or 0) >= self._rounds
        return self.early_stopped


def PrintTensor(tensor_names: Any, every_n: int = 100, first_n: int = 1) -> Any:
    """Returns a hook that logs tensors."""
    del first_n
    return tf1.train.LoggingTensorHook(tensor_names, every_n_iter=every_n)


def StopAtStep(num_steps: int | None = None, last_step: int | None = None) -> Any:
    """Returns a hook that stops training."""
    return tf1.train.StopAtStepHook(num_steps, last_step)


def CheckpointSaver(checkpoint_dir: str, **kwargs: Any) -> Any:
    """Returns a hook that saves checkpoints."""
    return tf1.train.CheckpointSaverHook(checkpoint_dir, **kwargs)


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[Any]:
    """Returns the monitors, which are hooks, with their estimator set."""
    hooks = list(monitors_or_hooks or [])
    for hook in hooks:
        if hasattr(hook, "set_estimator"):
            hook.set_estimator(estimator)
    return hooks
