"""RNN cells and stacks of them: `tf.nn.rnn_cell` and `tf.contrib.rnn`.

These are TensorFlow's cells, which also accept the arguments of earlier releases.
"""

from __future__ import annotations

import copy
import functools
import importlib
import sys
import weakref
from typing import Any, Callable, Iterator, Sequence

from compat._tensorflow import tf1
from compat.contrib import era
from compat.contrib.rnn.attention import Linear, linear

_IMPLEMENTATION = "tensorflow.python.ops.rnn_cell_impl"
_cells: Any = tf1.nn.rnn_cell
_files = [sys.modules[_cells.RNNCell.__module__], importlib.import_module(_IMPLEMENTATION)]
_linear, _Linear = linear, Linear  # Scripts also use these names.
_LayerRNNCell: Any = _files[0].LayerRNNCell  # Scripts also use this name, of releases until 1.9.
_kind: Any = type(_cells.RNNCell)
_unbuilt: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def __getattr__(name: str) -> Any:
    """Returns any other cell from TensorFlow, or a private name of its files, such as `_concat`."""
    for place in (_cells, *_files):
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"TensorFlow has no cell {name}")


def _like_rnncell(cell: Any) -> bool:
    """Returns whether an object has the attributes of a cell, which was the test until 1.9."""
    return callable(cell) and all(
        hasattr(cell, name) for name in ("output_size", "state_size", "zero_state")
    )


def separate(cell: Any) -> Any:
    """Returns a copy of a cell that creates its own variables.

    Tensors are shared. The first call keeps a copy, and all copies are made from that one, since
    the cell itself may have been built, and have variables, when it is copied again.
    """
    if cell not in _unbuilt:
        _unbuilt[cell] = copy.deepcopy(cell, dict(_shared(cell)))
    return copy.deepcopy(_unbuilt[cell], dict(_shared(_unbuilt[cell])))


def _shared(cell: Any) -> Iterator[tuple[int, Any]]:
    """Yields the objects that copies of a cell share, as entries of the memo of `copy.deepcopy`."""
    for value in vars(cell).values():
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, _cells.RNNCell):
                yield from _shared(each)
            elif isinstance(each, (tf1.Tensor, tf1.Variable, tf1.VariableScope, tf1.Graph)):
                yield id(each), each


class _Kind(_kind):
    """Metaclass that makes TensorFlow's cells instances of `RNNCell` as well."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is RNNCell:
            return isinstance(instance, _cells.RNNCell)
        return super().__instancecheck__(instance)


class RNNCell(_cells.RNNCell, metaclass=_Kind):
    """Accepts subclasses whose constructor does not call that of `RNNCell`, as before 1.2."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Initializes the layer here, since the subclass may not do so."""
        cell = super().__new__(cls)
        _cells.RNNCell.__init__(cell)
        return cell


def _is_size(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _ignoring_input_size(base: Any, place: int) -> Any:
    """Returns a subclass of a cell that ignores `input_size`, an argument until 0.12.

    `place` is the number of positional arguments between `num_units` and `input_size`.
    """

    class Cell(base):
        def __init__(self, num_units: int, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("input_size", None)
            if len(args) > place and era.of_script() == "0.x" and _is_size(args[place]):
                args = (*args[:place], *args[place + 1 :])
            super().__init__(num_units, *args, **kwargs)

    Cell.__name__ = Cell.__qualname__ = base.__name__  # TensorFlow names scopes after the class.
    return Cell


BasicRNNCell: Any = _ignoring_input_size(_cells.BasicRNNCell, 0)
GRUCell: Any = _ignoring_input_size(_cells.GRUCell, 0)
BasicLSTMCell: Any = _ignoring_input_size(_cells.BasicLSTMCell, 1)
LSTMCell: Any = _ignoring_input_size(_cells.LSTMCell, 0)


class MultiRNNCell(_cells.MultiRNNCell):
    """Gives each layer its own weights; to do so, copies a cell that is given several times.

    Until 1.0 layers made by `[cell] * layers` had their own weights; in later releases they share
    them.
    """

    def __init__(self, cells: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        separate_cells: list[Any] = []
        for cell in cells:
            separate_cells.append(
                separate(cell) if any(cell is other for other in separate_cells) else cell
            )
        super().__init__(separate_cells, *args, **kwargs)


class GRUBlockCellV2(GRUCell):
    """`tf.contrib.rnn.GRUBlockCellV2` without its kernels, which have no gradient now."""

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        units: Any = num_units if cell_size is None else cell_size
        super().__init__(units, reuse=reuse, name=name)


class GRUBlockCell(GRUBlockCellV2):
    """`tf.contrib.rnn.GRUBlockCell`: the same cell with other names of its variables."""

    def build(self, inputs_shape: Any) -> None:
        units, ones = self._num_units, tf1.constant_initializer(1.0)
        rows = int(inputs_shape[1]) + units
        self._gate_kernel = self.add_weight("w_ru", [rows, 2 * units])
        self._gate_bias = self.add_weight("b_ru", [2 * units], initializer=ones)
        self._candidate_kernel = self.add_weight("w_c", [rows, units])
        zeros = tf1.constant_initializer(0.0)
        self._candidate_bias = self.add_weight("b_c", [units], initializer=zeros)
        self.built = True


class _Wrapper(_cells.RNNCell):
    _scope_name = "wrapper"

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

    state_size = property(lambda self: self._cell.state_size)
    output_size = property(lambda self: self._cell.output_size)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        with tf1.variable_scope(scope or self._scope_name):
            return self.call(inputs, state)


class EmbeddingWrapper(_Wrapper):
    """Embeds integer symbols `[batch]` or `[batch, 1]` before its cell."""

    _scope_name = "embedding_wrapper"

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None
    ) -> None:
        super().__init__(cell)
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:
        first = self._initializer or tf1.get_variable_scope().initializer
        # The variance of this distribution is 1.
        first = first or tf1.random_uniform_initializer(-(3**0.5), 3**0.5)
        table = tf1.get_variable("embedding", self._shape, initializer=first)
        embedded = tf1.nn.embedding_lookup(table, tf1.reshape(inputs, [-1]))
        return self._cell(embedded, state)


class InputProjectionWrapper(_Wrapper):
    """Projects the input to a width before its cell; ignores `input_size` and `reuse`."""

    _scope_name = "input_projection_wrapper"

    def __init__(self, cell: Any, num_proj: int, activation: Any = None, **kwargs: Any) -> None:
        super().__init__(cell)
        self._width, self._activation = num_proj, activation or (lambda values: values)

    def call(self, inputs: Any, state: Any) -> Any:
        return self._cell(self._activation(linear(inputs, self._width)), state)


class OutputProjectionWrapper(_Wrapper):
    """Projects the output of its cell to a width; ignores `reuse`."""

    _scope_name = "output_projection_wrapper"
    output_size = property(lambda self: self._width)

    def __init__(self, cell: Any, output_size: int, activation: Any = None, **kwargs: Any) -> None:
        super().__init__(cell)
        self._width, self._activation = output_size, activation or (lambda values: values)

    def call(self, inputs: Any, state: Any) -> Any:
        output, state = self._cell(inputs, state)
        return self._activation(linear(output, self._width)), state


def _stack(
    layer: Callable[..., Any],
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
    **options: Any,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the last layer's outputs, and the states of all layers in both directions."""
    forwards, backwards = [], []
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with tf1.variable_scope(f"cell_{i}"):
                inputs, state_fw, state_bw = layer(
                    forward,
                    backward,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                    **options,
                )
            forwards.append(state_fw)
            backwards.append(state_bw)
    return inputs, tuple(forwards), tuple(backwards)


def _dynamic_layer(*args: Any, **options: Any) -> tuple[Any, Any, Any]:
    outputs, states = tf1.nn.bidirectional_dynamic_rnn(*args, **options)
    return (tf1.concat(outputs, 2), *states)


# Outputs are `[batch, time, width]`, or a list over time.
stack_bidirectional_dynamic_rnn = functools.partial(_stack, _dynamic_layer)
stack_bidirectional_rnn = functools.partial(_stack, tf1.nn.static_bidirectional_rnn)
