"""The saver of a program: TensorFlow's own class on both runtimes, with promises of ours."""

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

    It differs in what it promises: a trainable variable with NaN or infinity is not saved; the
    chief alone writes, so that parameter servers need no folder; the folder of a checkpoint is
    made; all checkpoints that are kept are listed in the file `checkpoint`, also if none is ever
    deleted. What TensorFlow raises as a plain `ValueError`, `TypeError` or `RuntimeError` is a
    `UserError` too.

    The rest is TensorFlow's: operations are added to the graph, so that the
    variables are made before the saver; `save` writes the meta graph. With `sharded=True` each
    server writes its own part, to its own disk. A `saver_def` or `builder` of yours brings
    its own operations, which save NaN as well.

    Args (those of TensorFlow; most used are):
      var_list: the variables to save, as a list or a dict by name; None means all.
      max_to_keep: how many checkpoints to keep; None or 0 keeps all.

    Raises:
      UserError: an argument is wrong.
    """

    _max_to_keep: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Saver:
        """Returns a saver of the runtime in use; also one of a subclass of yours."""
        own: type[Saver] = current_runtime().saver_class
        if issubclass(cls, own):
            own = cls
        elif cls is not Saver:
            own = types.new_class(cls.__name__, (cls, own))
        return super().__new__(own)

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """Returns the saver of a `SaverDef`."""
        made: Callable[..., Saver] = Saver
        return made(saver_def=saver_def, name=import_scope)

    def save(self, sess: Any, save_path: str, global_step: Any = None, **kwargs: Any) -> Any:
        """Writes a checkpoint, and adds it to the folder's `checkpoint` file.

        Args:
          sess: a session of ours, or of TensorFlow's.
          save_path: prefix of the files; the step is added to it.
          global_step: an int or the variable; None adds nothing.
          **kwargs: as TensorFlow's.

        Returns:
          The prefix written, such as "logs/model.ckpt-100"; None of a saver without variables.

        Raises:
          NotFiniteError: a trainable variable has NaN or infinity in it; nothing is written.
          NotWrittenError: the files cannot be written, as on a full disk.
        """
        raise NotImplementedError

    def restore(self, sess: Any, save_path: str) -> None:
        """Restores the variables from the checkpoint `save_path`.

        Raises:
          UserError: there is no such checkpoint, or it is of another model; it is the `OpError`
            that TensorFlow raises as well.
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
        """Returns the variables that are saved, by name; None if they cannot be told."""
        raise NotImplementedError

    def recover(
        self, checkpoint_paths: Sequence[str], say: Callable[[str], object] = print
    ) -> dict[str, np.ndarray] | None:
        """Recovers an earlier process's checkpoints; returns the values of the newest whole one.

        Logs each that is skipped, such as one truncated by a power cut. Returns None if the
        variables of this saver cannot be told.
        """
        whole, values = read_newest(checkpoint_paths, say)
        self.recover_last_checkpoints(whole)
        self._listed = whole
        variables = self.variables()
        if variables is None:
            return None
        return fitted(whole[-1], values, variables, current_runtime().slices())

    _listed: Sequence[str] = ()  # All there are, where none is deleted.

    @contextlib.contextmanager
    def _writing(self, prefix: str) -> Iterator[None]:
        """Makes the folder of a checkpoint; raises `NotWrittenError` if something is not written.

        An error that names no file of it, such as that of a lost peer, is passed on.
        """
        folder = os.path.dirname(prefix)
        try:
            if folder:
                tf1.gfile.MakeDirs(folder)
                tf1.gfile.ListDirectory(folder)  # TensorFlow 1.15 makes none where a file is.
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
        """Lists a checkpoint with the earlier ones; TensorFlow lists only it, if none is deleted.

        So an earlier one can be found if the newest is damaged.
        """
        if prefix is not None and not self._max_to_keep:
            self._listed = [path for path in self._listed if path != prefix] + [prefix]
            with quietly():
                tf1.train.update_checkpoint_state(
                    os.path.dirname(prefix), prefix, self._listed, latest_filename
                )


@contextlib.contextmanager
def user_errors(remedy: str) -> Iterator[None]:
    """Raises TensorFlow's plain errors of Python as a `UserError` that ends with `remedy`."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        if type(error) not in (TypeError, ValueError, RuntimeError):
            raise
        kind = UserTypeError if isinstance(error, TypeError) else UserError
        raise kind(f"{str(error).rstrip('.')}; {remedy}") from error


def step_number(session: Any, global_step: Any) -> Any:
    """Returns a step as a number, whether it is given as one, as a variable, or as its name."""
    if global_step is None or isinstance(global_step, (int, np.integer)):
        return global_step
    return int(np.asarray(session.run(global_step)).item())


def named(var_list: Any) -> dict[str, Any]:
    """Returns the variables of a list, or of a dict, by name."""
    if isinstance(var_list, Mapping):
        return dict(var_list)
    return {variable.name.rpartition(":")[0]: variable for variable in var_list}
