"""Provides `Saver`: TensorFlow's saver on either runtime, which does not save NaN or infinity."""

from __future__ import annotations

import abc
import contextlib
import os
import types
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import quietly, tf1
from compat.checkpoint.files import NotWrittenError, fitted, read_newest
from compat.checkpoint.folder_lock import UNFINISHED
from compat.errors import UserError, UserTypeError
from compat.runtime.interface import current_runtime


class Saver(metaclass=abc.ABCMeta):
    """A `tf.compat.v1.train.Saver` on either runtime, with the same arguments.

    It does not save NaN or infinity in a trainable variable. Only the chief writes, so parameter
    servers need no folder. `save` creates the folder of a checkpoint. The file `checkpoint` lists
    all checkpoints, even if none is ever deleted. A `ValueError`, `TypeError` or `RuntimeError` of
    TensorFlow is also a `UserError`.

    All else is TensorFlow's: the saver adds operations to the graph, so create it after the
    variables; `save` writes the meta graph. With `sharded=True` each server writes its part to its
    own disk. A `saver_def` or `builder` of the program has its own operations, which do save NaN.

    Args (those of TensorFlow, of which these are used most):
      var_list: the variables to save, as a list or a dict by name; None means all.
      max_to_keep: how many checkpoints to keep; None or 0 keeps all.

    Raises:
      UserError: an argument is wrong.
    """

    _max_to_keep: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Saver:
        """Returns a saver of the current runtime, which is also an instance of `cls`."""
        kind: type[Saver] = current_runtime().saver_class
        if issubclass(cls, kind):
            kind = cls
        elif cls is not Saver:
            kind = types.new_class(cls.__name__, (cls, kind))
        return super().__new__(kind)

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """Returns the saver of a `SaverDef`."""
        create: Callable[..., Saver] = Saver
        return create(saver_def=saver_def, name=import_scope)

    def save(self, sess: Any, save_path: str, global_step: Any = None, **kwargs: Any) -> Any:
        """Writes a checkpoint, and adds it to the folder's `checkpoint` file.

        Args:
          sess: a session of ours, or of TensorFlow's.
          save_path: prefix of the files; the step is added to it.
          global_step: an int or the variable; None adds nothing.
          **kwargs: as TensorFlow's.

        Returns:
          The prefix of the files, such as "logs/model.ckpt-100"; None without variables.

        Raises:
          NotFiniteError: a trainable variable has NaN or infinity in it; nothing is written.
          NotWrittenError: the files cannot be written, as on a full disk.
        """
        raise NotImplementedError

    def restore(self, sess: Any, save_path: str) -> None:
        """Restores the variables from the checkpoint `save_path`.

        Raises:
          UserError: the checkpoint does not exist, or is of another model; the error is also the
            `OpError` that TensorFlow raises.
        """
        raise NotImplementedError

    @property
    def last_checkpoints(self) -> list[str]:
        """Prefixes of the checkpoints that count towards `max_to_keep`, oldest first."""
        raise NotImplementedError

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """Counts the checkpoints of an earlier process, oldest first, towards `max_to_keep`."""
        raise NotImplementedError

    def variables(self) -> dict[str, Any] | None:
        """Returns the variables that are saved, by name; None if they are not known."""
        raise NotImplementedError

    def recover(
        self, checkpoint_paths: Sequence[str], say: Callable[[str], object] = print
    ) -> dict[str, np.ndarray] | None:
        """Recovers an earlier process's checkpoints; returns the values of the newest whole one.

        Logs each checkpoint that it skips, such as one truncated by a power cut. Returns None if
        the variables of this saver are not known.
        """
        whole, values = read_newest(checkpoint_paths, say)
        self.recover_last_checkpoints(whole)
        self._listed = whole
        variables = self.variables()
        if variables is None:
            return None
        return fitted(whole[-1], values, variables, current_runtime().slices())

    _listed: Sequence[str] = ()  # All checkpoints, if none is ever deleted.

    @contextlib.contextmanager
    def _writing(self, prefix: str) -> Iterator[None]:
        """Creates the folder of a checkpoint; raises `NotWrittenError` if a file is not written.

        An error of TensorFlow that names no file of the checkpoint, such as a lost peer, is not
        converted.
        """
        folder = os.path.dirname(prefix)
        try:
            if folder:
                tf1.gfile.MakeDirs(folder)
                # TensorFlow 1.15 reports no error if a file has the name of the folder.
                tf1.gfile.ListDirectory(folder)
        except tf1.errors.OpError as error:
            raise NotWrittenError(
                f"checkpoint {prefix}", error.message.rpartition("; ")[2]
            ) from error
        try:
            yield
        except (OSError, tf1.errors.OpError) as error:
            # TensorFlow's message has more lines; the one with the path has the reason.
            files = [prefix, *(os.path.join(folder, name) for name in (UNFINISHED, "checkpoint"))]
            reasons = [line for line in str(error).splitlines() if any(f in line for f in files)]
            if not reasons and not isinstance(error, OSError):
                raise
            reason = (reasons or [str(error)])[0].rpartition("; ")[2]
            raise NotWrittenError(f"checkpoint {prefix}", reason) from error

    def _list_all(self, prefix: str | None, latest_filename: str | None) -> None:
        """Lists a checkpoint with the earlier ones, so that they can replace a damaged newest one.

        If none is ever deleted, TensorFlow would list the newest checkpoint alone.
        """
        if prefix is not None and not self._max_to_keep:
            self._listed = [path for path in self._listed if path != prefix] + [prefix]
            with quietly():
                tf1.train.update_checkpoint_state(
                    os.path.dirname(prefix), prefix, self._listed, latest_filename
                )


@contextlib.contextmanager
def user_errors(remedy: str) -> Iterator[None]:
    """Converts TensorFlow's `ValueError` and the like to a `UserError` that ends in `remedy`."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        if type(error) not in (TypeError, ValueError, RuntimeError):
            raise
        kind = UserTypeError if isinstance(error, TypeError) else UserError
        raise kind(f"{str(error).rstrip('.')}; {remedy}") from error


def step_number(session: Any, global_step: Any) -> Any:
    """Returns a step as a number; `global_step` is a number, a variable, or its name."""
    if global_step is None or isinstance(global_step, (int, np.integer)):
        return global_step
    return int(np.asarray(session.run(global_step)).item())


def named(var_list: Any) -> dict[str, Any]:
    """Returns the variables of a list, or of a dict, by name."""
    if isinstance(var_list, Mapping):
        return dict(var_list)
    return {variable.name.rpartition(":")[0]: variable for variable in var_list}
