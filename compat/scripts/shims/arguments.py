"""Functions that accept the argument orders and names from before TensorFlow 1.0.

If a call is valid in both orders, the types and shapes of its arguments decide. If they cannot, the
era of the script decides, which the user has to give.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from compat._tensorflow import tf1
from compat.contrib import era


def _is_index(value: Any) -> bool:
    """Returns whether a value can be an axis: an integer, or a scalar integer tensor."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return True
    if isinstance(value, (np.ndarray, tf1.Tensor)):
        is_whole = tf1.as_dtype(value.dtype).is_integer
        return bool(is_whole and len(value.shape) == 0)
    return False


def rename(kwargs: dict[str, Any], **names: str) -> None:
    """Replaces old names of keyword arguments, such as `rename(kwargs, split_dim="axis")`."""
    for old, new in names.items():
        if old in kwargs:
            kwargs[new] = kwargs.pop(old)


def concat(*args: Any, **kwargs: Any) -> Any:
    """Accepts `(concat_dim, values)` and `(values, axis)`."""
    if "concat_dim" in kwargs:
        kwargs["axis"] = kwargs.pop("concat_dim")
        if args:
            kwargs["values"], *args = args  # type: ignore[assignment]
    elif args and _is_index(args[0]):
        is_list = len(args) == 1 or isinstance(args[1], (list, tuple))
        values = args[1:2] if is_list else ([args[1]],)  # In 0.x it could be a single tensor.
        kwargs.update(zip(("axis", "values", "name"), (args[0], *values, *args[2:])))
        args = ()
    return tf1.concat(*args, **kwargs)


def split(*args: Any, **kwargs: Any) -> Any:
    """Accepts `(split_dim, num_split, value)` and `(value, num_or_size_splits, axis)`."""
    rename(
        kwargs,
        split_dim="axis",
        num_split="num_or_size_splits",
        size_splits="num_or_size_splits",
    )
    if len(args) >= 3:
        is_old = _is_index(args[0]) and not _is_index(args[2])
    else:
        is_old = bool(args) and _is_index(args[0]) and "value" in kwargs and "axis" not in kwargs
    if is_old:
        kwargs.update(zip(("axis", "num_or_size_splits", "value", "name"), args))
        args = ()
    return tf1.split(*args, **kwargs)


def sparse_split(*args: Any, **kwargs: Any) -> Any:
    """Accepts `(split_dim, num_split, sp_input)` by position; 1.x requires keywords."""
    kwargs.update(zip(("axis", "num_split", "sp_input", "name"), args))
    rename(kwargs, split_dim="axis")
    return tf1.sparse_split(**kwargs)


def select(condition: Any, t: Any, e: Any, name: str | None = None) -> Any:
    """Selects from `t` where `condition` is true, else from `e`; a vector selects rows."""
    return tf1.where(condition, t, e, name=name)


def batch_matmul(
    x: Any, y: Any, adj_x: bool | None = None, adj_y: bool | None = None, name: str | None = None
) -> Any:
    """Multiplies batches of matrices."""
    return tf1.matmul(x, y, adjoint_a=bool(adj_x), adjoint_b=bool(adj_y), name=name)


def svd(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Accepts `(tensor, full_matrices, compute_uv)`; until 0.11 `compute_uv` came first."""
    if len(args) >= 2 and args[0] != args[1]:
        old, new = "tensor, compute_uv, full_matrices", "tensor, full_matrices, ..."
        if era.settle("tf.svd", old, new) == "0.x":
            args = (args[1], args[0], *args[2:])
    return tf1.svd(tensor, *args, **kwargs)


def reverse(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Accepts one bool per dimension, as in 0.x, and indices of dimensions, as in 1.x."""
    if "dims" in kwargs:
        args = (kwargs.pop("dims"), *args[1:])
    dims: Any = args[0] if args else None
    if isinstance(dims, (list, tuple)):
        is_old = bool(dims) and all(isinstance(flag, bool) for flag in dims)
    else:
        is_old = getattr(dims, "dtype", None) in (tf1.bool, np.bool_)
    if is_old:
        return tf1.raw_ops.Reverse(tensor=tensor, dims=dims)
    return tf1.reverse(tensor, *args, **kwargs)


def image_resize_images(images: Any, *args: Any, **kwargs: Any) -> Any:
    """Accepts `(images, new_height, new_width)` and `(images, size)`."""
    if len(args) >= 2 and _is_index(args[0]) and _is_index(args[1]):
        # The method follows the sizes in 0.x, and `size` in 1.x.
        return tf1.image.resize_images(images, [args[0], args[1]], *args[2:], **kwargs)
    if "new_height" in kwargs:
        kwargs["size"] = [kwargs.pop("new_height"), kwargs.pop("new_width")]
    return tf1.image.resize_images(images, *args, **kwargs)


def op_scope(values: Sequence[Any], name: str | None, default_name: str | None = None) -> Any:
    """Opens a name scope; accepts the arguments of 0.x."""
    return tf1.name_scope(name, default_name, values)


def variable_op_scope(
    values: Sequence[Any],
    name_or_scope: Any,
    default_name: str | None = None,
    *args: Any,
    **kw: Any,
) -> Any:
    """Opens a variable scope; accepts the arguments of 0.x."""
    return tf1.variable_scope(name_or_scope, default_name, values, *args, **kw)


def _logits_first(function: str, *more: str) -> Callable[..., Any]:
    """Returns a loss that accepts logits first by position; 1.x requires keywords.

    TensorFlow 2 accepts labels first: it would swap the arguments of an old call without an error.
    """

    def loss(*args: Any, **kwargs: Any) -> Any:
        # 1.x passes None first, to make keywords necessary.
        if not (len(args) == 1 and args[0] is None):
            kwargs.update(zip(("logits", "labels", *more, "name"), args))
        rename(kwargs, targets="labels")  # 0.x called the labels `targets`.
        return getattr(tf1.nn, function)(**kwargs)

    loss.__name__ = function
    return loss


nn_sigmoid_cross_entropy_with_logits = _logits_first("sigmoid_cross_entropy_with_logits")
nn_softmax_cross_entropy_with_logits = _logits_first("softmax_cross_entropy_with_logits", "dim")
nn_softmax_cross_entropy_with_logits_v2 = _logits_first(
    "softmax_cross_entropy_with_logits_v2", "dim"
)
nn_sparse_softmax_cross_entropy_with_logits = _logits_first(
    "sparse_softmax_cross_entropy_with_logits"
)


def nn_weighted_cross_entropy_with_logits(*args: Any, **kwargs: Any) -> Any:
    """Accepts `(logits, targets, pos_weight)` of 0.x and `(targets, logits, pos_weight)` of 1.x."""
    if len(args) >= 2:
        time = era.settle(
            "tf.nn.weighted_cross_entropy_with_logits", "logits, targets", "targets, logits"
        )
        order = ("logits", "labels") if time == "0.x" else ("labels", "logits")
        kwargs.update(zip((*order, "pos_weight", "name"), args))
        args = ()
    rename(kwargs, targets="labels")
    return tf1.nn.weighted_cross_entropy_with_logits(*args, **kwargs)


def _sampled(function: str) -> Callable[..., Any]:
    """Returns a loss that accepts `inputs, labels` of 0.x and `labels, inputs` of 1.x."""

    def loss(weights: Any, biases: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) >= 2 and _are_labels(args[1], args[0], function):
            args = (args[1], args[0], *args[2:])
        elif len(args) == 1 and "labels" in kwargs:
            kwargs["inputs"], args = args[0], ()
        return getattr(tf1.nn, function)(weights, biases, *args, **kwargs)

    loss.__name__ = function
    return loss


def _are_labels(second: Any, first: Any, function: str) -> bool:
    """Returns whether `second` is the labels and `first` the inputs.

    Labels are int64 `[batch, num_true]`, inputs float32 `[batch, units]`.
    """
    first, second = tf1.convert_to_tensor(first), tf1.convert_to_tensor(second)
    if first.dtype.is_integer != second.dtype.is_integer:
        return bool(second.dtype.is_integer)
    ranks = first.shape.rank, second.shape.rank
    if 1 in ranks and ranks[0] != ranks[1]:
        return ranks[1] == 1
    widths = [shape[1].value if len(shape) == 2 else None for shape in (first.shape, second.shape)]
    if None not in widths and 1 in widths and widths[0] != widths[1]:
        return widths[1] == 1
    old, new = "weights, biases, inputs, labels", "weights, biases, labels, inputs"
    return era.settle("tf.nn." + function, old, new) == "0.x"


nn_nce_loss = _sampled("nce_loss")
nn_sampled_softmax_loss = _sampled("sampled_softmax_loss")
