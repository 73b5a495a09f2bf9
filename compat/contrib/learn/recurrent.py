"""`tf.contrib.estimator.RNNClassifier` and `RNNEstimator`: recurrent networks on sequences."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Sequence

from compat._tensorflow import tf1
from compat.contrib.data.sequence_features import sequence_input_layer
from compat.contrib.learn.heads import clip_gradients_by_norm
from compat.contrib.rnn import cells
from compat.estimator.package import names as tf_estimator

_INSIDE = "tensorflow_estimator.python.estimator."
_heads: Any = importlib.import_module(_INSIDE + "canned.head")
_optimizers: Any = importlib.import_module(_INSIDE + "canned.optimizers")
_sequential: Any = importlib.import_module(_INSIDE + "head.sequential_head")
_CELLS = {"basic_rnn": "BasicRNNCell", "lstm": "BasicLSTMCell", "gru": "GRUCell"}
_RATE, _NORM = 0.05, 5.0  # Of an optimizer that is given by its name.
_LARGE = 64 << 20  # Bytes; a smaller table of an embedding is not divided.
USE_DEFAULT = object()


class RNNEstimator(tf_estimator.Estimator):
    """Trains a recurrent network with a head.

    Args:
      head: of `tf.contrib.estimator`, or a sequential head with `return_sequences`.
      sequence_feature_columns: dense columns of sequences.
      context_feature_columns: dense columns that are given to the network at each step.
      num_units: of each layer.
      cell_type: "basic_rnn", "lstm", "gru", or a class of cells.
      rnn_cell_fn: in the place of both, a function of the mode that returns the cell.
      return_sequences: whether the head is given the output of each step, and not the last one.
      model_dir: of the checkpoints.
      optimizer: one of `tf.train`, or its name, for a rate of 0.05 and gradients clipped to 5.
      input_layer_partitioner: of the tables of embeddings.
      config: a `RunConfig`.

    Raises:
      ValueError: if the cell is given twice, or is none, or the head is not sequential.
    """

    def __init__(
        self,
        head: Any,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        num_units: Sequence[int] | None = None,
        cell_type: Any = USE_DEFAULT,
        rnn_cell_fn: Callable[[str], Any] | None = None,
        return_sequences: bool = False,
        model_dir: str | None = None,
        optimizer: Any = "Adagrad",
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        if rnn_cell_fn and (num_units or cell_type is not USE_DEFAULT):
            raise ValueError("num_units and cell_type must not be specified when using rnn_cell_fn")
        if return_sequences and not isinstance(head, _sequential._SequentialHead):
            raise ValueError(
                "Provided head must be a `_SequentialHead` object when `return_sequences` is set "
                "to True."
            )
        kind = "basic_rnn" if cell_type is USE_DEFAULT else cell_type
        make = rnn_cell_fn or (lambda mode: _cell(num_units or (), kind))

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            parts = config.num_ps_replicas if config else 0
            divide = tf1.min_max_variable_partitioner
            with tf1.variable_scope("rnn", partitioner=divide(parts)):
                tables = input_layer_partitioner or divide(parts, min_slice_size=_LARGE)
                columns = sequence_feature_columns, context_feature_columns
                inputs, lengths = _inputs(features, *columns, tables)
                outputs, _ = tf1.nn.dynamic_rnn(make(mode), inputs, lengths, dtype=tf1.float32)
                if not return_sequences:
                    outputs = _last(outputs, lengths)
                with tf1.variable_scope("logits"):
                    weights = tf1.glorot_uniform_initializer()
                    units = head.logits_dimension
                    logits = tf1.layers.dense(outputs, units, kernel_initializer=weights)
                if return_sequences and head.input_sequence_mask_key not in features:
                    features[head.input_sequence_mask_key] = tf1.sequence_mask(lengths)
                return head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    labels=labels,
                    train_op_fn=lambda loss: _chosen(optimizer).minimize(
                        loss, global_step=tf1.train.get_global_step()
                    ),
                    logits=logits,
                )

        super().__init__(model_fn, model_dir, config)


class RNNClassifier(RNNEstimator):
    """Classifies sequences by a recurrent network; see `RNNEstimator`."""

    def __init__(
        self,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        num_units: Sequence[int] | None = None,
        cell_type: Any = USE_DEFAULT,
        rnn_cell_fn: Callable[[str], Any] | None = None,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE,
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        super().__init__(
            _heads._binary_logistic_or_multi_class_head(
                n_classes, weight_column, label_vocabulary, loss_reduction
            ),
            sequence_feature_columns,
            context_feature_columns,
            num_units,
            cell_type,
            rnn_cell_fn,
            model_dir=model_dir,
            optimizer=optimizer,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
        )


def _cell(sizes: Sequence[int], kind: Any) -> Any:
    kind = getattr(cells, _CELLS[kind]) if kind in _CELLS else kind
    if isinstance(kind, str) or not issubclass(kind, tf1.nn.rnn_cell.RNNCell):
        raise ValueError(f"Supported cell types are {list(_CELLS)}; got {kind}")
    made = [kind(num_units=size) for size in sizes]
    return made[0] if len(made) == 1 else cells.MultiRNNCell(made)


def _chosen(optimizer: Any) -> Any:
    if isinstance(optimizer, tf1.train.Optimizer):
        return optimizer
    named = _optimizers.get_optimizer_instance(optimizer, learning_rate=_RATE)
    return clip_gradients_by_norm(named, _NORM)


def _inputs(features: Any, sequence: Any, context: Any, partitioner: Any) -> tuple[Any, Any]:
    """Returns the inputs of each step, float32 `[batch, time, width]`, and the lengths."""
    values = tuple(features.values())
    with tf1.variable_scope("sequence_input_layer", values=values, partitioner=partitioner):
        inputs, lengths = sequence_input_layer(features, tuple(sequence or ()))
        tf1.summary.histogram("sequence_length", lengths)
        if context:
            fixed = tf1.feature_column.input_layer(features, tuple(context))
            times = [1, tf1.shape(inputs)[1], 1]
            inputs = tf1.concat([inputs, tf1.tile(tf1.expand_dims(fixed, 1), times)], 2)
        return inputs, lengths


def _last(outputs: Any, lengths: Any) -> Any:
    """Returns the output of the last step of each sequence, `[batch, units]`."""
    with tf1.name_scope("select_last_activations"):
        shape = tf1.shape(outputs)
        starts = tf1.cast(tf1.range(shape[0]) * shape[1], tf1.int64)
        rows = tf1.reshape(outputs, [shape[0] * shape[1], shape[2]])
        last = tf1.gather(rows, starts + tf1.cast(lengths, tf1.int64) - 1)
        last.set_shape([outputs.shape[0], outputs.shape[2]])
        return last
