"""Fused cells of `tf.contrib.rnn`: one operation per step or sequence; time comes first."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf, tf1
from compat.contrib.rnn import cells

_GATES = ("i", "f", "o")


def _build(layer: Any, features: int, units: int, use_peephole: bool) -> None:
    """Creates the variables of `LSTMCell`, in the order that fused cells use."""
    layer._kernel = layer.add_weight("kernel", [features + units, 4 * units])
    zeros = tf1.constant_initializer(0.0)
    layer._bias = layer.add_weight("bias", [4 * units], initializer=zeros)
    for gate in _GATES if use_peephole else ():
        setattr(layer, f"_w_{gate}_diag", layer.add_weight(f"w_{gate}_diag", [units]))
    layer.built = True


def _run(
    layer: Any, values: Any, longest: Any, state: Any, forget_bias: float, cell_clip: float | None
) -> tuple[Any, Any]:
    """Returns the cells and outputs of all steps, each [time, batch, units]."""
    cell, output = state
    zeros = tf1.zeros(cell.shape[-1:], cell.dtype)
    results = tf1.raw_ops.BlockLSTM(
        seq_len_max=tf1.cast(longest, tf.int64),
        x=values,
        cs_prev=cell,
        h_prev=output,
        w=layer._kernel,
        b=layer._bias,
        **{f"wc{gate}": getattr(layer, f"_w_{gate}_diag", zeros) for gate in _GATES},
        forget_bias=forget_bias,
        cell_clip=-1.0 if cell_clip is None else cell_clip,
        use_peephole=hasattr(layer, "_w_i_diag"),
    )
    return results.cs, results.h


class LSTMBlockCell(cells.LSTMCell):
    """An LSTM that runs one operation per step."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(num_units, reuse=reuse, name=name, dtype=dtype)
        self._use_peephole, self._options = use_peephole, (forget_bias, cell_clip)

    def build(self, inputs_shape: Any) -> None:
        _build(self, int(inputs_shape[1]), self.output_size, self._use_peephole)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Returns the output, [batch, units], and the next state, which contains the output."""
        cells, outputs = _run(self, inputs[tf.newaxis], 1, state, *self._options)
        return outputs[0], tf1.nn.rnn_cell.LSTMStateTuple(cells[0], outputs[0])


class FusedRNNCell:
    """Base class of objects that map a whole sequence to its outputs and final state.

    The input is a tensor [time, batch, features], or a list of tensors [batch, features]; the
    outputs have the same form.
    """


class LSTMBlockFusedCell(tf1.layers.Layer, FusedRNNCell):
    """An LSTM that runs one operation per sequence, with the variables of `LSTMCell`.

    Source: Zaremba et al., Recurrent neural network regularization, 2014.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.num_units, self._use_peephole = num_units, use_peephole
        self._options = forget_bias, cell_clip

    def build(self, input_shape: Any) -> None:
        features = tf.TensorShape(input_shape).as_list()[2]
        _build(self, features, self.num_units, self._use_peephole)

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Runs the LSTM over a sequence.

        Args:
          inputs: [time, batch, features], or a list of [batch, features].
          initial_state: Cell and output, each [batch, units]; by default zeros of `dtype`.
          dtype: Type of the default initial state.
          sequence_length: int [batch]; outputs beyond it are zeros.

        Returns:
          The outputs, [time, batch, units] or a list, and the state after each sequence's end.

        Raises:
          ValueError: Neither `initial_state` nor `dtype` is given.
        """
        values = tf1.stack(inputs) if isinstance(inputs, list) else inputs
        time, batch = tf1.unstack(tf1.shape(values)[:2])
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            initial_state = [tf1.zeros([batch, self.num_units], dtype)] * 2
        cell, output = initial_state
        longest = time if sequence_length is None else tf1.reduce_max(sequence_length)
        states, outputs = _run(self, values, longest, (cell, output), *self._options)
        if sequence_length is None:
            last = states[-1], outputs[-1]
        else:
            mask = tf1.sequence_mask(sequence_length, time, outputs.dtype)
            outputs *= tf1.expand_dims(tf1.transpose(mask), -1)
            # For a sequence of length 0, this is the final state.
            places = tf1.stack([tf1.cast(sequence_length, tf.int32), tf1.range(batch)], axis=1)
            last = tuple(
                tf1.gather_nd(tf1.concat([first[tf.newaxis], following], 0), places)
                for first, following in ((cell, states), (output, outputs))
            )
        if isinstance(inputs, list):
            outputs = tf1.unstack(outputs, len(inputs))
        return outputs, tf1.nn.rnn_cell.LSTMStateTuple(*last)


class FusedRNNCellAdaptor(FusedRNNCell):
    """Runs a cell over a whole sequence."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._is_dynamic = cell, use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """Returns outputs and final state; the arguments are those of `tf.nn.dynamic_rnn`."""
        is_list = isinstance(inputs, list)
        options = {"initial_state": initial_state, "dtype": dtype, "scope": scope}
        options["sequence_length"] = sequence_length
        if self._is_dynamic:
            values = tf1.stack(inputs) if is_list else inputs
            outputs, state = tf1.nn.dynamic_rnn(self._cell, values, time_major=True, **options)
            return (tf1.unstack(outputs) if is_list else outputs), state
        values = inputs if is_list else tf1.unstack(inputs)
        outputs, state = tf1.nn.static_rnn(self._cell, values, **options)
        return (outputs if is_list else tf1.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Runs a fused cell over a sequence from its end to its start."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """Returns outputs, in the order of the inputs, and the state after the first step."""
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _reversed(outputs, sequence_length), state


def _reversed(values: Any, lengths: Any) -> Any:
    if isinstance(values, list):
        return values[::-1]
    if lengths is None:
        return tf1.reverse(values, [0])
    return tf1.reverse_sequence(values, lengths, seq_axis=0, batch_axis=1)
