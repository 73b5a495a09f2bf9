"""Base class of experiments: settings, data, model, loss and metrics in one class.

The docstring of `experiments` has an example, docs/experiments.md a whole program.

As in `tf.estimator`, the model, its data and the way it is run are separate. As in Orbit, a step
returns values by name. As in Lightning's module, one class has the model and the hooks.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Mapping, Sequence

from compat.errors import UserError
from experiments.launching import forgotten
from experiments.settings import Settings
from experiments.training.recording.callback import Callback


class Experiment(Callback):
    """Describes what is trained and evaluated; every method but `data` and `loss` has a default.

    Each task that trains or evaluates makes one instance, after TensorFlow has been loaded.

    Args:
      settings: an instance of `Settings` of this class.

    Attributes:
      settings: the settings of the run.
      total_steps: updates of the whole run; None if the run ends with data of unknown length.
    """

    Settings: ClassVar[Any] = Settings
    # The value that chooses the best checkpoint and stops a run early, and whether "max" or "min"
    # of it is better.
    monitor: ClassVar[str] = "validation/loss"
    mode: ClassVar[str] = "min"
    # The name of the loss in curves and on the console.
    loss_name: ClassVar[str] = "loss"
    # Values for several settings at once, by the name that --preset takes.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    total_steps: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        forgotten.defined(cls)

    def __new__(cls, *given: Any, **named: Any) -> Any:
        """Notes that the program uses an experiment; see `forgotten`."""
        forgotten.used()
        return super().__new__(cls)

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute; refuses the name of a method, such as `self.loss`."""
        if callable(getattr(Experiment, name, None)):
            kind = type(self).__name__
            raise AttributeError(f"{kind}.{name} is a method; choose another name of the attribute")
        super().__setattr__(name, value)

    @classmethod
    def name(cls) -> str:
        """Returns the default name of MLflow's experiment and log folders: `MyNet` is `my_net`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def shared_flags(cls, settings: Any) -> list[str]:
        """Returns flags that a launcher adds for all tasks, so that all make the same choice.

        For a setting such as "auto", each task might choose another value.
        """
        del settings
        return []

    def data(self) -> Any:
        """Returns the splits: a dict with "train", and optionally "validation" and "test".

        Each split is a dict of arrays by name, whose first dimension is the examples; or a function
        of (worker, number of workers) that returns a `tf.data.Dataset` of batches, for data that do
        not fit in memory. See `experiments.Data`, which also names a source for the record.
        """
        raise UserError(f"{type(self).__name__} has no data(); return a dict of splits")

    def build(self) -> None:
        """Makes the variables, e.g. a `tf.Module`; called once, in the scope that places them.

        This is not needed if `loss` makes them, by `tf.compat.v1.get_variable` or `tf.Variable`.
        """

    def loss(self, batch: Any, training: bool) -> Any:
        """Returns the loss of a batch, and outputs for the metrics.

        As in a `tf.function`, assignments, prints and assertions run in the order of the program.

        Args:
          batch: a dict of tensors `[batch, ...]` if the split is a dict of arrays; an element of
            the dataset if the split is a stream.
          training: whether the batch is trained on; else it is evaluated.

        Returns:
          The loss, or a pair of the loss and a dict of output tensors by name. The loss is a
          floating-point scalar, the mean over the batch's examples; or a dict of several such
          losses by name, each of which updates variables of its own: see `optimizer`. Outputs that
          are scalars become curves; the other outputs are for `metrics`.
        """
        raise UserError(f"{type(self).__name__} has no loss(); return a scalar tensor")

    def predict(self, batch: Any) -> Mapping[str, Any]:
        """Returns the outputs of an exported model; by default the output "predictions" of `loss`.

        This is called to build a graph in which nothing is trained. The inputs of the exported
        model are the tensors of the batch that the outputs depend on, usually without the labels.

        Args:
          batch: a dict of tensors `[batch, ...]`, as for `loss`, of any batch size.

        Returns:
          A dict of tensors `[batch, ...]` by name.

        Raises:
          UserError: `loss` has no output "predictions".
        """
        found = self.loss(batch, False)
        outputs = found[1] if isinstance(found, tuple) else {}
        if "predictions" not in outputs:
            raise UserError(
                f"{type(self).__name__}.loss() has no output 'predictions', which a model exports "
                "by default; return one, or define predict(batch)"
            )
        return {"predictions": outputs["predictions"]}

    def metrics(self) -> Mapping[str, Any]:
        """Returns the metrics of an evaluation by name; see `experiments.evaluation.metrics`."""
        return {}

    def learning_rate(self, step: Any) -> Any:
        """Returns the learning rate: a float, or a scalar tensor computed from `step`.

        By default it follows --learning_rate, --schedule and --warmup_steps.

        Args:
          step: the variable that counts the updates, int64 scalar.
        """
        from experiments.training.updates import rate

        return rate.scheduled(self.settings, step, self.total_steps)

    def optimizer(self, step: Any) -> Any:
        """Returns an optimizer of `tf.compat.v1.train`; by default that of `--optimizer`.

        Keras 3 does not support parameter servers, so its optimizers do not work here; layers do.

        Args:
          step: as for `learning_rate`.

        Returns:
          One optimizer; or, for groups of variables, a list of pairs (optimizer, variables) or of
          `experiments.Update`; or, if `loss` returns several losses, a dict with an optimizer, a
          pair or an `Update` for each loss, by its name. All gradients are computed from the
          variables as they are before the step.
        """
        from experiments.training.updates import optimizers

        settings, rate = self.settings, self.learning_rate(step)
        return optimizers.create(settings.optimizer, rate, settings.weight_decay)

    def gradients(self, pairs: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        """Changes the gradients before they are applied; by default --clip_norm, --weight_decay.

        With --optimizer=adamw the optimizer itself decays the variables, so only --clip_norm holds.

        Args:
          pairs: (gradient, variable), without variables that have no gradient. A gradient is a
            tensor or, if the batch has read only some rows of a table, `tf.IndexedSlices`.

        Returns:
          The changed pairs.
        """
        from experiments.training.updates import optimizers

        decay = 0.0 if self.settings.optimizer == "adamw" else self.settings.weight_decay
        return optimizers.regularised(pairs, decay, self.settings.clip_norm)

    def after_update(self, step: Any, optimizer: Any) -> Any:
        """Returns an operation to run in each update, after the optimizer; or None.

        Assignments that this method makes run in each update, even if it returns None.

        Use it to record something of the batch that `loss` was last called with, such as which rows
        of a table are in use; with `--accumulate` that is the last part of the batch. It is not
        called with `--communication_period`.

        Args:
          step: the variable that counts the updates, after this update.
          optimizer: the optimizer that made the update; `get_slot` returns its slots.
        """
        del step, optimizer

    def explain(self, error: Exception) -> Exception | None:
        """Returns an error to raise in place of a `tf.errors.InvalidArgumentError`, or None.

        Use it for streams: TensorFlow's error about a malformed example does not name the file.
        """
        del error
        return None

    def callbacks(self) -> Sequence[Callback]:
        """Returns callbacks, whose hooks are called after those of this experiment.

        This is called once in the chief and once in an evaluator, when the variables exist.
        """
        return []
