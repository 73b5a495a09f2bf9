"""The files of a checkpoint, in TensorFlow's own format, keyed by variable name.

They are the same on both runtimes. A partitioned variable is one entry, in slices.
"""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import re
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from compat._tensorflow import quietly, tf1
from compat.checkpoint import pieces
from compat.checkpoint.comparison import compare, stored_values, unfit
from compat.checkpoint.folder_lock import UNFINISHED, token
from compat.checkpoint.literal_names import pattern, readable
from compat.errors import UserError

_number = itertools.count()  # Numbers the checkpoints that this process begins to write.
_OTHER_CHECKPOINT = "remove its files to do without it, or choose another log folder"


class NotFiniteError(ValueError):
    """A trainable variable has NaN or infinity, so it is not saved; earlier checkpoints are kept.

    Does not apply to variables whose initial value is infinite, such as that of a best loss.
    """

    TEXT = "variable {} has a value that is not finite; not saved"


class NotWrittenError(UserError):
    """A checkpoint or graph cannot be written, as on a full disk; earlier checkpoints are kept."""

    exit_code = 1

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"{what} cannot be written ({reason}); earlier checkpoints stay; free or repair the "
            "folder, and the same command resumes from the newest"
        )


@contextlib.contextmanager
def writing_graph(folder: str) -> Iterator[None]:
    """Converts an error of writing `graph.pbtxt` to a `NotWrittenError`.

    Removes the unfinished files that TensorFlow leaves in the folder.
    """
    path = os.path.join(folder, "graph.pbtxt")
    try:
        yield
    except tf1.errors.OpError as error:
        if path not in error.message:
            raise
        for name in tf1.gfile.ListDirectory(folder):
            if name.startswith("graph.pbtxt.tmp"):
                tf1.gfile.Remove(os.path.join(folder, name))
        raise NotWrittenError(f"graph {path}", error.message.rpartition("; ")[2]) from error


def write(prefix: str, values: Mapping[Any, np.ndarray]) -> None:
    """Writes a checkpoint of two files; the index, which is written last, makes it complete.

    A key is the name of a value, or the name of a partitioned variable and the `shape_and_slice`
    of the value in it.
    """
    slices = {(key, "") if isinstance(key, str) else key: array for key, array in values.items()}
    keys = sorted(slices)
    # A graph and a session of its own: the same on both runtimes, and on this machine.
    with tf1.Graph().as_default(), tf1.device("/cpu:0"):
        feeds = {tf1.placeholder(slices[k].dtype, slices[k].shape): slices[k] for k in keys}
        save = tf1.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=[name for name, _ in keys],
            shape_and_slices=[spec for _, spec in keys],
            tensors=list(feeds),
        )
        with tf1.Session() as session:
            session.run(save, feeds)


@contextlib.contextmanager
def unfinished(prefix: str) -> Iterator[str]:
    """Yields a temporary prefix for a checkpoint that is being written; see `finish`.

    The prefix is in a temporary folder beside the checkpoint, which is removed at the end. After a
    kill, the next process that holds the log folder's lock removes it.
    """
    folder, name = os.path.split(prefix)
    temporary = os.path.join(folder, f"{UNFINISHED}{token()}-{next(_number)}")
    try:
        tf1.gfile.MakeDirs(temporary)
        yield os.path.join(temporary, name)
    finally:
        with contextlib.suppress(tf1.errors.OpError):
            tf1.gfile.DeleteRecursively(temporary)


def finish(begun: str, prefix: str) -> None:
    """Renames the files of a complete checkpoint; the index comes last, since readers need it."""
    folder, name = os.path.split(begun)
    written = [file for file in tf1.gfile.ListDirectory(folder) if file.startswith(f"{name}.")]
    for file in sorted(written, key=lambda file: (file == f"{name}.index", file)):
        tf1.gfile.Rename(os.path.join(folder, file), prefix + file[len(name) :], overwrite=True)


def read(prefix: str, remedy: str = _OTHER_CHECKPOINT, large: bool = True) -> dict[str, Any]:
    """Returns all values of a checkpoint by name, or raises a `UserError` that ends in `remedy`.

    Also reads checkpoints of TensorFlow before 0.12: one file, or several files if `prefix` ends
    like "-?????-of-00002". If `large` is false, values of more than `pieces.PIECE_BYTES` are read
    piece by piece, to verify them, and returned as `pieces.LargeValue`.
    """

    def value(name: str) -> Any:
        shape, dtype = shapes[name], types[name]
        if large or not shape or pieces.size(shape, dtype.as_numpy_dtype) <= pieces.PIECE_BYTES:
            return np.asarray(reader.get_tensor(name))
        stored = pieces.LargeValue(prefix, name, dtype, shape)
        for _ in stored.pieces():
            pass
        return stored

    with reading(prefix, remedy) as reader:
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        return {name: value(name) for name in shapes}


def read_newest(
    prefixes: Sequence[str], say: Callable[[str], object] = print
) -> tuple[list[str], dict[str, Any]]:
    """Returns the prefixes up to the newest whole checkpoint, oldest first, and its values.

    Logs each checkpoint that it skips, such as one truncated by a power cut. Raises `UserError` if
    none can be read.
    """
    *earlier, newest = prefixes
    if not earlier:
        return [newest], read(newest, large=False)
    try:
        return [*prefixes], read(newest, "trying the one before", large=False)
    except UserError as error:
        say(str(error))
        return read_newest(earlier, say)


@contextlib.contextmanager
def reading(prefix: str, remedy: str) -> Iterator[Any]:
    """Yields TensorFlow's reader; converts its errors to a `UserError` that ends in `remedy`."""
    try:
        with readable(prefix) as path:
            yield tf1.train.NewCheckpointReader(path)
    except (tf1.errors.OpError, LookupError, ValueError, RuntimeError) as error:
        # The class depends on the release; LookupError stands for a truncated data file.
        reason = str(error).splitlines()[0]
        raise UserError(f"checkpoint {prefix} cannot be read ({reason}); {remedy}") from error


def fitted(
    prefix: str,
    values: Mapping[str, np.ndarray],
    variables: Mapping[str, Any],
    slices: Mapping[str, Any],
    others: bool = False,
) -> dict[str, np.ndarray]:
    """Selects the values of variables from `values`, which `read` returned.

    `slices` has the `SaveSliceInfo` of parts of partitioned variables by name.

    Raises `UserError` if names, shapes or dtypes differ. With `others` the checkpoint may have more
    variables, such as optimizer slots.
    """
    differences = compare(stored_values(values), variables, slices)
    problems = [*differences.different, *([] if others else differences.unknown)]
    if problems:
        raise unfit(prefix, problems)
    return {
        name: values[name] if name in values else _part(values, slices[name]) for name in variables
    }


def _part(values: Mapping[str, Any], part: Any) -> Any:
    """Returns the value of a part of a partitioned variable."""
    whole = values[part.full_name]
    if isinstance(whole, pieces.LargeValue):
        return whole.part(part.spec, part.var_shape)
    ends = zip(part.var_offset, part.var_shape)
    return whole[tuple(slice(start, start + size) for start, size in ends)]


def exists(prefix: str) -> bool:
    """Whether a checkpoint with this prefix exists, including those of TensorFlow before 0.12."""
    with quietly():
        return bool(tf1.train.checkpoint_exists(pattern(prefix)))


def in_folder(folder: str) -> list[str]:
    """Returns the names in a folder; [] if it does not exist or is not a folder."""
    with contextlib.suppress(tf1.errors.OpError):
        if tf1.gfile.IsDirectory(folder):
            return [name.rstrip("/") for name in tf1.gfile.ListDirectory(folder)]
    return []


def are_of(name: str, there: list[str]) -> bool:
    """Whether one of the file names `there` belongs to the checkpoint `name`."""
    # Before 0.12 a prefix was the name of the file, or a pattern.
    old = re.search(r"-\?{5}-of-\d{5}$", name) is not None
    return bool(name) and any(
        file == name or file.startswith(f"{name}.") or (old and fnmatch.fnmatch(file, name))
        for file in there
    )
