"""Reports that a checkpoint is of another program in one line; TensorFlow prints a hundred."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator

from compat._tensorflow import private, tf1
from compat.checkpoint.comparison import compare, stored, unfit
from compat.checkpoint.files import reading
from compat.errors import UserError, raised_as

_UNFIT = (tf1.errors.InvalidArgumentError, tf1.errors.NotFoundError)


@contextlib.contextmanager
def reported(saver: Any, prefix: Any) -> Iterator[None]:
    """Converts errors of the body to a `UserError` if the checkpoint is of another model.

    The checkpoint is of another model if it lacks variables of the `saver`, or has them with other
    shapes or dtypes. The converted error is also an instance of its original class.
    """
    try:
        yield
    except _UNFIT as error:
        problems: list[str] = []
        # If the checkpoint cannot be read, TensorFlow's error has the reason.
        with contextlib.suppress(UserError), reading(str(prefix), "") as reader:
            problems += compare(stored(reader), *_variables(saver)).different
        if not problems:
            raise
        with raised_as(type(error)):
            raise unfit(str(prefix), problems) from None


def _variables(saver: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the variables of a saver, and the `SaveSliceInfo` of parts, by name."""
    listed = private.listed_by(saver)
    if not isinstance(listed, dict):
        listed = {getattr(variable, "name", "").partition(":")[0]: variable for variable in listed}
    variables = {
        name: variable for name, variable in listed.items() if hasattr(variable, "get_shape")
    }
    slices = {name: private.slice_info(variable) for name, variable in variables.items()}
    return variables, slices


def install() -> None:
    """Makes TensorFlow's own saver raise the errors of `reported`, in this process."""
    restore = tf1.train.Saver.restore

    @functools.wraps(restore)
    def restore_or_report(self: Any, sess: Any, save_path: Any) -> None:
        with reported(self, save_path):
            restore(self, sess, save_path)

    tf1.train.Saver.restore = restore_or_report
