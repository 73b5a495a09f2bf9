"""Base class of experiments: settings, data, model, loss and metrics in one class.

`experiments` has an example, docs/experiments.md a whole program.

The split into what is computed, what it is fed and how it is run is that of `tf.estimator`; steps
that return values by name are Orbit's; one class with hooks is Lightning's module.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Mapping, Sequence

from compat.errors import UserError
from experiments.launching import forgotten
from experiments.settings import Settings
from experiments.training.recording.callback import Callback


class Experiment(Callback):
    """What is trained, and what is evaluated; every method but `data` and `loss` has a default.

    One instance is made in each task that trains or evaluates. TensorFlow is loaded by then.

    Args:
      settings: an instance of the class's own `Settings`.

    Attributes:
      settings: the settings of the run.
      total_steps: updates of the whole run, None where only the end of the data says it.
    """

    Settings: ClassVar[Any] = Settings
    # What the best checkpoint and early stopping go by, and whether "max" or "min" is better.
    monitor: ClassVar[str] = "validation/loss"
    mode: ClassVar[str] = "min"
    # What curves and lines call the loss.
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
        """Sets an attribute, but none in the place of a method, such as `self.loss`."""
        if callable(getattr(Experiment, name, None)):
            kind = type(self).__name__
            raise AttributeError(f"{kind}.{name} is a method; choose another name of the attribute")
        super().__setattr__(name, value)

    @classmethod
    def name(cls) -> str:
        """Returns the name of MLflow's experiment and of new log folders: `MyNet` is `my_net`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def shared_flags(cls, settings: Any) -> list[str]:
        """Returns flags that a launcher adds for all tasks: what each would choose for itself."""
        del settings
        return []

    def data(self) -> Any:
        """Returns the splits: a dict with "train" and, where there are any, "validation", "test".

        Each split is a dict of arrays by name, whose first dimension is the examples; or a function
        of (worker, number of workers) that returns a `tf.data.Dataset` of batches, for data that do
        not fit in memory. See `experiments.Data`, which also names a source for the record.
        """
        raise UserError(f"{type(self).__name__} has no data(); return a dict of splits")

    def build(self) -> None:
        """Makes the variables, e.g. a `tf.Module`; called once, where they are placed.

        Not needed where `loss` makes them, by `tf.compat.v1.get_variable` or `tf.Variable`.
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
        """Returns what an exported model computes; by default "predictions" of `loss`'s outputs.

        Called where nothing is trained, to build a graph. The inputs of the exported model are the
        tensors of the batch that the returned ones depend on, so labels usually are none.

        Args:
          batch: as for `loss`, a dict of tensors `[batch, ...]` of any batch size.

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
        """Returns the learning rate: a float, or a scalar tensor made of `step`.

        By default as --learning_rate, --schedule and --warmup_steps say.

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
          One optimizer; or a list of (optimizer, variables) or `experiments.Update`, for groups of
          variables; or, where `loss` returns several losses, a dict with one of these by the name
          of each. All gradients are those of the variables before the step.
        """
        from experiments.training.updates import optimizers

        settings, rate = self.settings, self.learning_rate(step)
        return optimizers.create(settings.optimizer, rate, settings.weight_decay)

    def gradients(self, pairs: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        """Returns the gradients that are applied; by default as --clip_norm and --weight_decay say.

        The decay of --optimizer=adamw is not of gradients, but of variables.

        Args:
          pairs: (gradient, variable), without variables that have no gradient. A gradient is a
            tensor or, of a table of which the batch has read a few rows, `tf.IndexedSlices`.
        """
        from experiments.training.updates import optimizers

        decay = 0.0 if self.settings.optimizer == "adamw" else self.settings.weight_decay
        return optimizers.regularised(pairs, decay, self.settings.clip_norm)

    def after_update(self, step: Any, optimizer: Any) -> Any:
        """Returns an operation that is part of each update, after the optimizer's; or None.

        What it assigns is part of it as well, returned or not.

        For what a model notes of the batch that `loss` was last called with, such as which rows of
        a table are in use; with `--accumulate` that is its last part. With
        `--communication_period` there is none.

        Args:
          step: as for `learning_rate`, after the update.
          optimizer: that has made the update, with its `get_slot`.
        """
        del step, optimizer

    def explain(self, error: Exception) -> Exception | None:
        """Returns what to raise in place of a `tf.errors.InvalidArgumentError`, or None.

        For streams: TensorFlow's error of a malformed example does not name the file.
        """
        del error
        return None

    def callbacks(self) -> Sequence[Callback]:
        """Returns objects that are called at the events of a run, after this one's own methods.

        Called once in the chief and in an evaluator, when the variables have been made.
        """
        return []
