"""Rebuilds the model of a run, with its trained values, from the log folder."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

import numpy as np

from compat import UserError, device, get_or_create_global_step, select_runtime, tf, tf1
from compat._tensorflow import quietly
from compat.checkpoint import files
from compat.runtime.graphs.nodes import dependencies
from experiments.evaluation import best_checkpoint
from experiments.export.loading import load_experiment
from experiments.launching import devices
from experiments.settings.files import read_settings
from experiments.training import inputs
from experiments.training.updates import step


@dataclass(frozen=True)
class Model:
    """A trained model in a graph of its own.

    Attributes:
      experiment: the experiment that was trained.
      checkpoint: prefix of the checkpoint that the values were read from.
      which: "best" or "last".
      inputs: placeholders by name; those with a row for each example are `[None, ...]`.
      outputs: tensors by name.
      session: a session in which the variables have the trained values.
      example: the first row of the training data by name; empty if these are streams.
    """

    experiment: Any
    checkpoint: str
    which: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    session: Any
    example: Mapping[str, np.ndarray]

    @property
    def step(self) -> int:
        """The global step of the checkpoint."""
        return best_checkpoint.step_of(self.checkpoint)

    def predict(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the outputs by name; `arrays` has an array for each input, by name."""
        feed = {placeholder: arrays[name] for name, placeholder in self.inputs.items()}
        return dict(self.session.run(dict(self.outputs), feed))


@contextlib.contextmanager
def open_model(
    logdir: str, which: str | None = None, program: str | None = None, trust: bool = False
) -> Iterator[Model]:
    """Opens the model of the run in a log folder.

    The model is a graph of the legacy runtime, the only kind that all releases can write as a
    SavedModel; the checkpoint may be of either runtime. What the program prints goes to standard
    error.

    Args:
      logdir: the log folder.
      which: "best" or "last" checkpoint; None for the best one, or the last if there is no best.
      program: the file or module that defines the experiment; None for the one that ran.
      trust: whether to run a program that another user has recorded in the log folder.

    Raises:
      UserError: there is no such checkpoint or program, the checkpoint is of another model, or the
        experiment has no predictions.
    """
    which, prefix = best_checkpoint.find(logdir, which)
    runtime = select_runtime("legacy")
    with tf1.Graph().as_default(), quietly():
        with contextlib.redirect_stdout(sys.stderr):
            kind = load_experiment(logdir, program, trust)
            found = read_settings(os.path.join(logdir, "settings.yaml"), kind.Settings)
            experiment = kind(kind.Settings(**found, logdir=logdir).resolved(kind.name()))
            # Called first, as in training: the other methods may read attributes that data() sets.
            data = inputs.data_of(experiment.data())
            batch, placeholders = _batch(inputs.batch_specs(data))
            with device(None):
                get_or_create_global_step()
                experiment.build()
                outputs = step.predict(experiment, batch)
        variables = runtime.variables()
        values = files.fitted(prefix, files.read(prefix), variables, runtime.slices(), others=True)
        used = set(dependencies(list(outputs.values())))
        taken = {name: p for name, p in placeholders.items() if p.op in used}
        if not taken:
            raise UserError(
                f"{type(experiment).__name__}.predict() depends on no tensor of the batch; compute "
                "its outputs from them"
            )
        with tf1.Session(config=devices.session_config(experiment.settings)) as session:
            session.run([tf1.local_variables_initializer(), tf1.tables_initializer()])
            for name, variable in variables.items():
                initializer = variable.initializer
                session.run(initializer, {initializer.inputs[1]: values[name]})
            example = {} if data.streams else {n: array[:1] for n, array in data.train.items()}
            yield Model(experiment, prefix, which, taken, outputs, session, example)


def _batch(specs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a batch of any size, and the placeholders that it is made of, by name."""
    if not isinstance(specs, Mapping):
        raise UserError(
            f"the batches of data() are of type {type(specs).__name__}, so the inputs of the model "
            "have no names; let its datasets have dicts of tensors as elements"
        )
    batch: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name, spec in sorted(specs.items()):
        kind = type(spec).__name__
        if kind == "SparseTensorSpec":
            rank = spec.shape.rank
            parts = {
                "indices": tf1.placeholder(tf.int64, [None, rank]),
                "values": tf1.placeholder(spec.dtype, [None]),
                "dense_shape": tf1.placeholder(tf.int64, [rank]),
            }
            batch[name] = tf.SparseTensor(**parts)
            found.update((f"{name}/{part}", tensor) for part, tensor in parts.items())
        elif kind == "TensorSpec":
            shape = spec.shape
            if shape.rank:
                shape = [None, *shape.as_list()[1:]]
            batch[name] = found[name] = tf1.placeholder(spec.dtype, shape)
        else:
            raise UserError(
                f"input {name!r} of data() is of type {kind}, which cannot be exported; give "
                "dense or sparse tensors"
            )
    return batch, found
