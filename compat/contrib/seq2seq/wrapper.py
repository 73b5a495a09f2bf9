"""`tf.contrib.seq2seq.AttentionWrapper`: a cell with attention."""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple

from compat._tensorflow import tf1
from compat.contrib.rnn import cells
from compat.contrib.seq2seq.attention import AttentionMechanism

nest = tf1.nest


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`."""

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """Returns this state with other values, whose shapes must be the same."""

        def with_shape(old: Any, new: Any) -> Any:
            if isinstance(old, tf1.Tensor) and isinstance(new, tf1.Tensor):
                if not new.shape.is_compatible_with(old.shape):
                    raise ValueError(
                        f"The shape of the AttentionWrapperState is expected to be same as the one "
                        f"to clone. self.shape: {old.shape}, input.shape: {new.shape}"
                    )
                return tf1.ensure_shape(new, old.shape)
            return new

        return nest.map_structure(with_shape, self, self._replace(**kwargs))


def _compute_attention(
    attention_mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """Returns the attention, the alignments and the next state of an attention mechanism."""
    alignments, state = attention_mechanism(cell_output, state=attention_state)
    context = tf1.matmul(tf1.expand_dims(alignments, 1), attention_mechanism.values)
    context = tf1.squeeze(context, [1])
    if attention_layer is None:
        return context, alignments, state
    return attention_layer(tf1.concat([cell_output, context], 1)), alignments, state


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class AttentionWrapper(cells.RNNCell):
    """Wraps a cell, which receives its input together with the previous attention.

    The output is the new attention, or that of the cell if `output_attention` is false.
    `attention_mechanism` is one mechanism or several; `attention_layer_size` is the width of the
    layer that combines the cell's output and the attention, or one width for each mechanism.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = _tuple(attention_mechanism)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        self._cell = cell
        self._cell_input_fn = cell_input_fn or (lambda *both: tf1.concat(both, -1))
        self._attention_fn = attention_fn or _compute_attention
        self._output_attention, self._alignment_history = output_attention, alignment_history
        self._set_layers(attention_layer_size, attention_layer)
        self._initial_cell_state = None
        with tf1.name_scope(name, "AttentionWrapperInit"):
            if initial_cell_state is not None:
                last = nest.flatten(initial_cell_state)[-1]
                size = last.shape.as_list()[0] or tf1.shape(last)[0]
                self._initial_cell_state = self._checked(size, initial_cell_state)

    def _set_layers(self, sizes: Any, layers: Any) -> None:
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        mechanisms = self._attention_mechanisms
        specified = sizes if layers is None else layers
        if specified is not None and len(_tuple(specified)) != len(mechanisms):
            raise ValueError(
                "If provided, attention_layer_size and attention_layer must contain exactly one "
                f"per attention_mechanism, saw: {len(_tuple(specified))} vs {len(mechanisms)}"
            )
        widths = [int(each.values.shape[-1]) for each in mechanisms]
        self._attention_layers = None
        if sizes is not None:
            widths = list(_tuple(sizes))
            self._attention_layers = tuple(
                tf1.layers.Dense(width, name="attention_layer", use_bias=False, dtype=each.dtype)
                for width, each in zip(widths, mechanisms)
            )
        elif layers is not None:
            self._attention_layers = _tuple(layers)
            both = [self._cell.output_size + width for width in widths]
            widths = [
                int(layer.compute_output_shape([None, size])[-1])
                for layer, size in zip(self._attention_layers, both)
            ]
        self._attention_layer_size = sum(widths)

    def _checked(self, batch_size: Any, values: Any) -> Any:
        """Returns `values`, after checking `batch_size` against the memories of the mechanisms."""
        checks = [
            tf1.assert_equal(
                batch_size,
                each.batch_size,
                message=f"{type(self).__name__} {self.name}: non-matching batch sizes between the "
                "memory (encoder output) and its own.  Are you using the BeamSearchDecoder?  You "
                "may need to tile your initial state or memory via the "
                "tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width.",
            )
            for each in self._attention_mechanisms
        ]
        with tf1.control_dependencies([each for each in checks if each is not None]):
            return nest.map_structure(tf1.identity, values)

    def _item_or_tuple(self, values: Iterable[Any]) -> Any:
        items = tuple(values)
        return items if self._is_multi else items[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        sizes = [each.alignments_size for each in self._attention_mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=tf1.TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(sizes),
            attention_state=self._item_or_tuple(e.state_size for e in self._attention_mechanisms),
            alignment_history=self._item_or_tuple(
                size if self._alignment_history else () for size in sizes
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with tf1.name_scope(f"{type(self).__name__}ZeroState", values=[batch_size]):
            state = self._initial_cell_state
            if state is None:
                state = self._cell.zero_state(batch_size, dtype)
            mechanisms = self._attention_mechanisms
            alignments = [each.initial_alignments(batch_size, dtype) for each in mechanisms]

            def history(values: Any) -> Any:
                shape = values.shape
                return tf1.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)

            return AttentionWrapperState(
                cell_state=self._checked(batch_size, state),
                time=tf1.zeros([], tf1.int32),
                attention=cells._zero_state_tensors(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(
                    each.initial_state(batch_size, dtype) for each in mechanisms
                ),
                alignment_history=self._item_or_tuple(
                    history(each) if self._alignment_history else () for each in alignments
                ),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. Received type "
                f"{type(state)} instead."
            )
        output, cell_state = self._cell(
            self._cell_input_fn(inputs, state.attention), state.cell_state
        )
        output = self._checked(output.shape.as_list()[0] or tf1.shape(output)[0], output)
        states, histories = state.attention_state, state.alignment_history
        if not self._is_multi:
            states, histories = [states], [histories]
        layers = self._attention_layers or [None] * len(self._attention_mechanisms)
        results = [
            self._attention_fn(mechanism, output, old, layer)
            for mechanism, old, layer in zip(self._attention_mechanisms, states, layers)
        ]
        if self._alignment_history:
            histories = [old.write(state.time, new[1]) for old, new in zip(histories, results)]
        attention = tf1.concat([each[0] for each in results], 1)
        next_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            alignments=self._item_or_tuple(each[1] for each in results),
            attention_state=self._item_or_tuple(each[2] for each in results),
            alignment_history=self._item_or_tuple(histories),
        )
        return (attention if self._output_attention else output), next_state
