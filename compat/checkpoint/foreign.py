"""Reports in one line that a checkpoint is of another program; TensorFlow prints a hundred."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator

from compat._tensorflow import private, tf1
from compat.checkpoint.files import reading, unfit
from compat.errors import UserError, raised_as

_UNFIT = (tf1.errors.InvalidArgumentError, tf1.errors.NotFoundError)


@contextlib.contextmanager
def reported(saver: Any, prefix: Any) -> Iterator[None]:
    """Makes what the body raises a `UserError` as well, if the checkpoint lacks variables.

    Args:
      saver: a `tf.compat.v1.train.Saver`, also one of ours, which restores in the body.
      prefix: of the checkpoint.

    Raises:
      UserError: variables are missing there, or have other shapes or dtypes.
    """
    try:
        yield
    except _UNFIT as error:
        problems: list[str] = []
        # If it cannot be read, TensorFlow has said why.
        with contextlib.suppress(UserError), reading(str(prefix), "") as reader:
            problems += sorted(_problems(saver, reader))
        if not problems:
            raise
        with raised_as(type(error)):
            raise unfit(str(prefix), problems) from None


def _problems(saver: Any, reader: Any) -> Iterator[str]:
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    listed = private.listed_by(saver)
    for key, variable in listed.items() if isinstance(listed, dict) else zip(listed, listed):
        if not hasattr(variable, "get_shape"):
            continue
        part = private.slice_info(variable)
        own = variable.name if key is variable else key
        name = part.full_name if part else own.partition(":")[0]
        shape = list(part.full_shape) if part else variable.get_shape().as_list()
        dtype = variable.dtype.base_dtype
        if name not in shapes:
            yield f"{name} is missing"
        elif list(shapes[name]) != shape:
            yield f"{name} has shape {list(shapes[name])} instead of {shape}"
        elif types[name].base_dtype != dtype:
            yield f"{name} is {types[name].base_dtype.name} instead of {dtype.name}"


def install() -> None:
    """Makes TensorFlow's own saver report so, in this process."""
    restore = tf1.train.Saver.restore

    @functools.wraps(restore)
    def restore_or_report(self: Any, sess: Any, save_path: Any) -> None:
        with reported(self, save_path):
            restore(self, sess, save_path)

    tf1.train.Saver.restore = restore_or_report
