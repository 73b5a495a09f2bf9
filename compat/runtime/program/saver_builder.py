"""Builds the operations of a saver, which check values and save large variables in pieces."""

from __future__ import annotations

import types
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.checkpoint import pieces
from compat.checkpoint.files import NotFiniteError
from compat.runtime.program.variables import filled

_PARTS = "_parts/"  # Added to the prefix of a checkpoint while its parts are written.
_SMALL_BYTES = 1 << 20  # Larger constants are weights.


class _Member(NamedTuple):
    """A unit that is saved at a time: a whole saveable object, or rows of a variable."""

    saveable: Any
    piece: pieces.Piece | None = None


class SaverBuilder(private.bulk_saver_builder()):  # type: ignore[misc]
    """Builds TensorFlow's operations, for models that are larger than the memory of this task.

    A check is part of the save operation of each trainable variable, so the value that is checked
    is the one that is written, even if other workers update the variable. Variables are saved and
    restored one batch after another, each no larger than a piece if possible. A large variable that
    the program reads by row leaves its server a batch of rows at a time.
    """

    _behind = _PARTS  # The prefix of a checkpoint.

    def _AddShardedSaveOps(self, *args: Any) -> Any:  # noqa: N802 - The name is TensorFlow's.
        # Each server writes to a flat folder, because folders inside it would not be created.
        self._behind = _PARTS.rstrip("/")
        return super()._AddShardedSaveOps(*args)

    def save_op(self, filename_tensor: Any, saveables: Any) -> Any:
        trainable = tf1.trainable_variables()
        self._trained = {variable.op for variable in trainable if not _begins_infinite(variable)}
        batches = list(pieces.batches(_members(saveables)))
        if len(batches) < 2 or self._write_version != tf1.train.SaverDef.V2:
            members = [_Member(saveable) for saveable in saveables]
            return self._save(filename_tensor, members)
        prefixes: list[Any] = []
        done: list[Any] = []
        for number, batch in enumerate(batches):
            with tf1.control_dependencies(done[-1:]):
                prefixes.append(tf1.string_join([filename_tensor, f"{self._behind}{number}"]))
                done.append(self._save(prefixes[-1], batch))
        with tf1.control_dependencies(done[-1:]):
            return tf1.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=tf.stack(prefixes), destination_prefix=filename_tensor
            )

    def _AddRestoreOps(  # noqa: N802 - The name is TensorFlow's.
        self,
        filename_tensor: Any,
        saveables: Any,
        restore_sequentially: bool,
        reshape: bool,
        preferred_shard: int = -1,
        name: str = "restore_all",
    ) -> Any:
        options = (restore_sequentially, reshape, preferred_shard, name)
        # The smallest comes last: other workers wait until all variables are initialized, and so
        # until each table has its values.
        ordered = sorted(saveables, key=_size, reverse=True)
        done: list[Any] = []
        for batch in pieces.batches((saveable, _size(saveable)) for saveable in ordered):
            with tf1.control_dependencies(done[-1:]):
                if _is_table(batch[0]) and not reshape and batch[-1] is not ordered[-1]:
                    done.append(_restored(filename_tensor, batch[0]))
                else:
                    done.append(super()._AddRestoreOps(filename_tensor, batch, *options))
        return done[-1] if done else super()._AddRestoreOps(filename_tensor, [], *options)

    def _save(self, prefix: Any, members: Sequence[_Member]) -> Any:
        """Returns TensorFlow's save operation for these members only."""
        named = [types.SimpleNamespace(specs=list(self._specs(member))) for member in members]
        return super().save_op(prefix, named)

    def _specs(self, member: _Member) -> Iterator[Any]:
        """Yields the save spec of each tensor, with a check of its values if it is trainable."""
        saveable, piece = member
        op = getattr(saveable.op, "op", None)  # A variable, or an operation that reads it.
        read = [tensor.op for tensor in getattr(op, "inputs", ())]
        is_trained = not self._trained.isdisjoint([op, *read])
        for spec in saveable.specs:
            tensor = spec.tensor if piece is None else _gathered(saveable.op, piece)
            if is_trained and tensor.dtype.base_dtype in (tf.float16, tf.float32, tf.float64):
                text = NotFiniteError.TEXT.format(saveable.name)
                with tf1.device(tensor.device):
                    tensor = tf1.debugging.check_numerics(tensor, text)
            slice_spec = spec.slice_spec if piece is None else piece.spec
            yield types.SimpleNamespace(name=spec.name, slice_spec=slice_spec, tensor=tensor)


def _begins_infinite(variable: Any) -> bool:
    """Whether a variable's initial value is infinite, so that infinity in it is no error.

    A variable for a program's best loss may begin so, but no weight does.
    """
    inputs = getattr(variable.initializer, "inputs", ())[1:2]
    if not inputs or not inputs[0].dtype.base_dtype.is_floating or _bytes(variable) > _SMALL_BYTES:
        return False
    op = inputs[0].op
    while op.type in ("Fill", "Identity"):
        op = op.inputs[-1].op
    # `get_static_value` would make the tensor unfeedable.
    return op.type == "Const" and bool(np.isinf(tf.make_ndarray(op.get_attr("value"))).any())


def _members(saveables: Sequence[Any]) -> Iterator[tuple[_Member, int]]:
    """Yields the units that are saved at a time, and their bytes."""
    for saveable in saveables:
        if not _is_table(saveable):
            yield _Member(saveable), _size(saveable)
            continue
        shape, dtype = saveable.op.shape.as_list(), saveable.op.dtype.base_dtype.as_numpy_dtype
        for piece in pieces.cut(shape, dtype, saveable.specs[0].slice_spec):
            yield _Member(saveable, piece), piece.bytes


def _size(saveable: Any) -> int:
    """Returns the bytes of a saveable object; 0 if it has no shape, such as an iterator."""
    return _bytes(saveable.op)


def _bytes(variable: Any) -> int:
    shape = getattr(variable, "shape", None)
    if shape is None or not shape.is_fully_defined():
        return 0
    return pieces.size(shape.as_list(), variable.dtype.base_dtype.as_numpy_dtype)


def _is_table(saveable: Any) -> bool:
    """Whether a variable is larger than a piece, and steps read or write only some of its rows.

    All other variables cross the network whole with each update.
    """
    if _size(saveable) <= pieces.PIECE_BYTES or not saveable.op.shape.rank:
        return False
    handle = getattr(saveable.op, "handle", None)
    return handle is not None and pieces.is_by_row(handle.consumers())


def _gathered(variable: Any, piece: pieces.Piece) -> Any:
    """Returns rows of a variable, which are read on the variable's device."""
    with tf1.device(variable.device):
        return tf1.raw_ops.ResourceGather(
            resource=variable.handle, indices=_rows(piece), dtype=variable.dtype.base_dtype
        )


def _restored(filename_tensor: Any, saveable: Any) -> Any:
    """Returns the operation that restores a table, some rows at a time."""
    variable, (spec,) = saveable.op, saveable.specs
    shape, dtype = variable.shape.as_list(), variable.dtype.base_dtype
    with tf1.device(variable.device):
        zeros = filled(shape, tf.zeros([], dtype))
        done = [tf1.raw_ops.AssignVariableOp(resource=variable.handle, value=zeros)]
    for piece in pieces.cut(shape, dtype.as_numpy_dtype, spec.slice_spec):
        with tf1.control_dependencies(done[-1:]):
            (values,) = tf1.raw_ops.RestoreV2(
                prefix=filename_tensor,
                tensor_names=[spec.name],
                shape_and_slices=[piece.spec],
                dtypes=[dtype],
            )
        with tf1.device(variable.device):
            done.append(
                tf1.raw_ops.ResourceScatterUpdate(
                    resource=variable.handle, indices=_rows(piece), updates=values
                )
            )
    return done[-1]


def _rows(piece: pieces.Piece) -> Any:
    return tf.range(piece.first, piece.first + piece.number)
