"""Callbacks: objects whose hooks are called at the events of a run."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from compat.errors import UserError

if TYPE_CHECKING:
    from experiments.training.recording.run import Result, Run

# Names that other libraries have for a method, and its name here.
_ELSEWHERE = {
    "callback": "callbacks",
    "configure_callbacks": "callbacks",
    "configure_optimizers": "optimizer",
    "metric": "metrics",
    "optimizers": "optimizer",
    "predict_step": "predict",
    "train_dataloader": "data",
    "training_step": "loss",
}


class Callback:
    """Has hooks, methods that are called at the events of a run; by default they do nothing.

    An experiment is a callback itself, and `Experiment.callbacks` returns others:

        class Norms(Callback):
            def on_evaluation(self, run, values):
                weights = run.session.read({"weights": self.weights})
                run.writer.scalars(run.step, {"norm": np.linalg.norm(weights["weights"])})

    `run.stop("enough")` in any hook but `on_end` ends the run early.
    """

    def on_start(self, run: Run) -> None:
        """Called in the chief when the session is open, before the first update."""

    def on_step(self, run: Run, values: Mapping[str, float]) -> None:
        """Called in the chief with the values of an update.

        It is not called for every update on the modern runtime, or if other workers make updates.
        """

    def on_evaluation(self, run: Run, values: Mapping[str, float]) -> None:
        """Called in the process that evaluates, with the values by name, as "validation/loss"."""

    def on_end(self, run: Run, result: Result) -> None:
        """Called in the chief at the end of a complete run, before the record is closed."""


class Callbacks(Callback):
    """Several callbacks as one, called in their order; the experiment itself is the first.

    Raises:
      UserError: `Experiment.callbacks` did not return a list of callbacks.
    """

    def __init__(self, experiment: Any) -> None:
        found = experiment.callbacks()
        if not isinstance(found, (list, tuple)):
            raise UserError(f"callbacks() returned {type(found).__name__}; return a list")
        for each in found:
            if not isinstance(each, Callback):
                what = each.__name__ if isinstance(each, type) else f"a {type(each).__name__}"
                remedy = f"{what}()" if isinstance(each, type) else "subclasses of Callback"
                raise UserError(f"callbacks() has {what}, which is no Callback; return {remedy}")
            check_methods(type(each), Callback)
        self._all: Sequence[Callback] = [experiment, *found]

    def on_start(self, run: Run) -> None:
        for each in self._all:
            each.on_start(run)

    def on_step(self, run: Run, values: Mapping[str, float]) -> None:
        for each in self._all:
            each.on_step(run, values)

    def on_evaluation(self, run: Run, values: Mapping[str, float]) -> None:
        for each in self._all:
            each.on_evaluation(run, values)

    def on_end(self, run: Run, result: Result) -> None:
        for each in self._all:
            each.on_end(run, result)


def check_methods(kind: type, base: type) -> None:
    """Raises a `UserError` for a method with wrong arguments, or a hook that no run calls.

    Args:
      kind: a subclass of `base`.
      base: `Experiment` or `Callback`; its methods have the right arguments.
    """
    for name, known in inspect.getmembers(base, inspect.isfunction):
        found = getattr(kind, name)
        expected = [*inspect.signature(known).parameters]
        if not callable(found):
            raise UserError(
                f"{kind.__name__}.{name} is a {type(found).__name__}; write def "
                f"{name}({', '.join(expected)})"
            )
        is_method = inspect.isfunction(inspect.getattr_static(kind, name))
        if found is known or not is_method:
            continue
        signature = inspect.signature(found)
        try:
            signature.bind(*expected)
        except TypeError:
            own = ", ".join(map(str, signature.parameters.values()))
            raise UserError(
                f"{kind.__name__}.{name}({own}) is called with other arguments; write def "
                f"{name}({', '.join(expected)})"
            ) from None
    hooks = [name for name in dir(Callback) if name.startswith("on_")]
    for name in dir(kind):
        own_name = _ELSEWHERE.get(name, "")
        if name.startswith("on_") and name not in hooks and callable(getattr(kind, name)):
            raise UserError(
                f"{kind.__name__}.{name} is no hook, so no run calls it; the hooks are "
                f"{', '.join(hooks)}"
            )
        if hasattr(base, own_name) and getattr(kind, own_name) is getattr(base, own_name):
            raise UserError(f"{kind.__name__}.{name} is called by no run; name it {own_name}")
