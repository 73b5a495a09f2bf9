"""Checkpoints: one format for both runtimes, TensorFlow's own, keyed by variable name.

Only the chief writes, with values that it reads from the parameter servers. So they need no folder
in common, and the runtimes need to agree on names only. `tf.compat.v1.train.Saver` reads these
files, and this module reads those of `Saver`; a partitioned variable is one entry, in slices.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from compat._tensorflow import quietly, tf, tf1
from compat.checkpoint.matching import dtype_name
from compat.errors import UserError
from compat.runtime.interface import current_runtime

_OTHER_CHECKPOINT = "remove its files to do without it, or choose another log folder"


class NotFiniteError(ValueError):
    """A trainable variable to be saved is NaN or infinite; the checkpoints that exist are kept."""


class NotWrittenError(UserError):
    """A checkpoint cannot be written, as on a full disk; those that exist are kept."""

    exit_code = 1


def write(
    prefix: str, values: Mapping[str, np.ndarray], slices: Mapping[str, Any] | None = None
) -> None:
    """Writes a checkpoint of two files; the index, written last, makes it whole.

    `slices` has the `SaveSliceInfo` of the values that are part of a whole.
    """
    names, slices = sorted(values), slices or {}
    parts = [slices.get(name) for name in names]
    # A graph and a session of its own: the same on both runtimes, and on this machine.
    with tf1.Graph().as_default(), tf1.device("/cpu:0"):
        feeds = {tf1.placeholder(values[n].dtype, values[n].shape): values[n] for n in names}
        save = tf1.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=[n if part is None else part.full_name for n, part in zip(names, parts)],
            shape_and_slices=["" if part is None else part.spec for part in parts],
            tensors=list(feeds),
        )
        with tf1.Session() as session:
            session.run(save, feeds)


def read(prefix: str, remedy: str = _OTHER_CHECKPOINT) -> dict[str, np.ndarray]:
    """Returns all values of a checkpoint by name, or raises `UserError`, which ends with `remedy`.

    Those of TensorFlow before 0.12 are read, too: one file, or several whose prefix ends as in
    "-?????-of-00002".
    """
    try:
        reader = tf.train.load_checkpoint(prefix)
        names = reader.get_variable_to_shape_map()
        return {name: np.asarray(reader.get_tensor(name)) for name in names}
    except (tf1.errors.OpError, LookupError, ValueError, RuntimeError) as error:
        # Which one depends on the release; a LookupError is for a truncated data file.
        reason = str(error).splitlines()[0]
        raise UserError(f"checkpoint {prefix} cannot be read ({reason}); {remedy}") from error


def fitted(
    prefix: str,
    values: Mapping[str, np.ndarray],
    variables: Mapping[str, Any],
    others: bool = False,
) -> dict[str, np.ndarray]:
    """Returns the values of these variables from those that `read` returned of a checkpoint.

    Raises `UserError` if names, shapes or dtypes differ, so that it belongs to another model; with
    `others` it may have more variables, such as optimizer slots.
    """
    values = _cut(values, variables)
    if others:
        values = {name: value for name, value in values.items() if name in variables}
    problems = [f"{name} is missing" for name in sorted(set(variables) - set(values))]
    problems += [f"{name} is unknown here" for name in sorted(set(values) - set(variables))]
    problems += [
        f"{name} has shape {list(values[name].shape)} instead of {variables[name].shape.as_list()}"
        for name in sorted(set(values) & set(variables))
        if list(values[name].shape) != variables[name].shape.as_list()
    ]
    problems += [
        f"{name} is {dtype_name(values[name])} instead of {variables[name].dtype.base_dtype.name}"
        for name in sorted(set(values) & set(variables))
        if dtype_name(values[name]) != variables[name].dtype.base_dtype.name
    ]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise UserError(
            f"checkpoint {prefix} is of another model or optimizer: {'; '.join(problems[:3])}"
            f"{more}; choose another log folder, or the settings it was made with, or bring it "
            "over by python -m compat convert-checkpoint"
        )
    return dict(values)


def _cut(values: Mapping[str, np.ndarray], variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the values with partitioned variables in the parts that the program has."""
    slices = current_runtime().slices()
    wanted = {name: slices[name] for name in variables if name in slices and name not in values}
    parts = {
        name: part
        for name, part in wanted.items()
        if list(getattr(values.get(part.full_name), "shape", ())) == list(part.full_shape)
    }
    wholes = {part.full_name for part in parts.values()}
    cut = {name: value for name, value in values.items() if name not in wholes}
    for name, part in parts.items():
        ends = zip(part.var_offset, part.var_shape)
        cut[name] = values[part.full_name][tuple(slice(a, a + size) for a, size in ends)]
    return cut


def history(folder: str) -> list[str]:
    """Returns the prefixes of the checkpoints in `folder`, oldest first."""
    file = Path(folder) / "checkpoint"
    # A ValueError: it is not text, or a name in it cannot be a file name.
    with contextlib.suppress(ValueError), quietly():
        state = tf1.train.get_checkpoint_state(folder)
        if state is not None:
            # Only the last part of a prefix counts: the folder may have been moved or copied.
            paths = [Path(folder, Path(name).name) for name in state.all_model_checkpoint_paths]
            return [str(path) for path in paths if _has_files(path)]
    if file.exists():
        raise UserError(
            f"{file} does not name the checkpoints of its folder, as it should; choose "
            "another log folder, or remove the file to start anew"
        )
    return []


def _has_files(prefix: Path) -> bool:
    # Before 0.12 a prefix was the name of the file, or a pattern.
    return any(any(prefix.parent.glob(prefix.name + end)) for end in (".*", ""))


class Saver:
    """Differs from `tf.compat.v1.train.Saver` in that it saves on either runtime.

    Args:
      var_list: the variables to save, as a list or a dict by name; None: all of the model and
        the optimizer, when `save` is called.
      max_to_keep: how many checkpoints to keep; None or 0 keeps all.
    """

    def __init__(self, var_list: Any = None, max_to_keep: int | None = 5) -> None:
        self._var_list = var_list
        self._max_to_keep = max_to_keep
        self._kept: list[str] = []

    saver_def = None  # For TensorFlow's meta graphs: none of our operations are in them.

    def variables(self) -> dict[str, Any]:
        """Returns the variables that are saved, by name."""
        if self._var_list is None:
            return current_runtime().variables()
        if isinstance(self._var_list, Mapping):
            return dict(self._var_list)
        return {variable.name.rpartition(":")[0]: variable for variable in self._var_list}

    @property
    def last_checkpoints(self) -> list[str]:
        """Prefixes of the checkpoints that are kept, oldest first."""
        return list(self._kept)

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """Counts the checkpoints of an earlier process, oldest first, towards `max_to_keep`."""
        self._kept = [path for path in checkpoint_paths if Path(path + ".index").exists()]

    def recover(
        self, checkpoint_paths: Sequence[str], say: Callable[[str], object] = print
    ) -> dict[str, np.ndarray]:
        """Recovers an earlier process's checkpoints; returns the values of the newest whole one.

        Logs each that is skipped, such as one truncated by a power cut.
        """
        whole = list(checkpoint_paths)
        while len(whole) > 1:
            try:
                values = read(whole[-1], "trying the one before")
                break
            except UserError as error:
                say(str(error))
                whole.pop()
        else:
            values = read(whole[0])
        self.recover_last_checkpoints(whole)
        return fitted(whole[-1], values, self.variables())

    def build(self) -> None:
        """Does nothing: TensorFlow's saver adds its operations to the graph here."""

    def save(
        self, sess: Any, save_path: str, global_step: Any = None, write_meta_graph: bool = True
    ) -> str:
        """Writes a checkpoint, and adds it to the folder's `checkpoint` file.

        Args:
          sess: a session of ours, or of TensorFlow's on the legacy runtime.
          save_path: prefix of the files; the step is added to it.
          global_step: an int or the variable; None adds nothing.
          write_meta_graph: has no effect: there is no meta graph; see `saver_def`.

        Returns:
          The prefix written, such as "logs/model.ckpt-100".

        Raises:
          NotFiniteError: a trainable variable has NaN or infinity in it; nothing is written.
          NotWrittenError: the files cannot be written, as on a full disk.
        """
        variables = self.variables()
        values = {name: np.asarray(value) for name, value in sess.run(variables).items()}
        for name, value in values.items():
            # Other variables may well hold it, such as the best loss so far.
            trained = getattr(variables[name], "trainable", True)
            floating = np.issubdtype(value.dtype, np.floating)
            if trained and floating and not np.isfinite(value).all():
                raise NotFiniteError(f"variable {name} has a value that is not finite; not saved")
        prefix = save_path
        if global_step is not None:
            number = global_step
            if not isinstance(global_step, (int, np.integer)):
                name = global_step.name.rpartition(":")[0]
                number = values[name] if name in values else np.asarray(sess.run(global_step))
            prefix = f"{save_path}-{int(number)}"
        try:
            self._write(prefix, values)
        except (OSError, tf1.errors.OpError) as error:
            # TensorFlow's message has more lines; the one with the path has the reason.
            reasons = [line for line in str(error).splitlines() if prefix in line]
            reason = (reasons or [str(error)])[0].rpartition("; ")[2]
            raise NotWrittenError(
                f"checkpoint {prefix} cannot be written ({reason}); the earlier ones stay; free "
                "or repair the folder, and the same command resumes from the newest"
            ) from error
        return prefix

    def _write(self, prefix: str, values: Mapping[str, np.ndarray]) -> None:
        Path(prefix).parent.mkdir(parents=True, exist_ok=True)
        slices = current_runtime().slices()
        # A whole of which only some parts are saved could not be read.
        torn = {part.full_name for name, part in slices.items() if name not in values}
        write(prefix, values, {n: p for n, p in slices.items() if p.full_name not in torn})
        self._kept = [path for path in self._kept if path != prefix] + [prefix]
        surplus = max(0, len(self._kept) - (self._max_to_keep or len(self._kept)))
        for old in self._kept[:surplus]:
            for file in Path(old).parent.glob(Path(old).name + ".*"):
                file.unlink()
        self._kept = self._kept[surplus:]
        with quietly():
            tf1.train.update_checkpoint_state(str(Path(prefix).parent), prefix, self._kept)

    def restore(self, sess: Any, save_path: str) -> None:
        """Restores the variables from the checkpoint `save_path`.

        Raises:
          UserError: there is no such checkpoint, or it belongs to another model.
        """
        variables = self.variables()
        values = fitted(save_path, read(save_path), variables)
        if hasattr(sess, "assign"):
            sess.assign(variables, values)
            return
        with quietly():  # Deprecated.
            for name, variable in variables.items():  # A session of TensorFlow's.
                variable.load(values[name], sess)
