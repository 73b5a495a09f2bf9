"""Shows an error in a user's program: first the failing line, then the program's own frames."""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
import traceback
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from compat._tensorflow import tf1

_PATHS = sysconfig.get_paths()
_PROJECT = Path(__file__).resolve().parents[2]
_NOT_OWN = tuple(
    os.path.join(os.path.realpath(path), "")
    for path in (
        *(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(str(_PROJECT / package) for package in ("compat", "experiments", "models")),
    )
)
# Parts of TensorFlow's messages about functions and nodes, in whose place the user's line is shown.
_BEFORE = re.compile(r".*?^ *Node: '[^']*'\n", re.DOTALL | re.MULTILINE)
_OF_FUNCTION = re.compile(r"^\s*(\(\d+\) \w+: *|\{\{function_node [^}]*\}\} *)+")
_NO_REASON = re.compile(
    r"\s*$|Graph execution error|Detected at node|\d+ root error|Exception encountered when calling"
)
_OF_TERMINAL = re.compile(r"\x1b\[\d*m")  # Keras prints the reason in bold.
_OF_NODE = re.compile(r" for '\{\{node [^']*'|\{\{node ([^}]*)\}\}")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}|\[\[node ([^\s\]]+)")
# The operation that takes a batch from a stream, and the line before the node that failed.
_OF_STREAM = re.compile(r"IteratorGetNext(AsOptional)?(_\d+)?(\}\})?\]\]")
_REASON = re.compile(r"^(.*\S)\n\s*\[\[\{\{node ", re.MULTILINE)
_OF_ITERATOR = re.compile(r".* with iterator: Iterator::\S*: ")
_MOST_CHARACTERS = 300
# The beginning of the message of --check_numerics; the name of the operation follows.
FIRST_FAULT = "the first value that is NaN or infinite is made by"
_REMEDIES = (
    (
        r"float32.* float64|float64.* float32",
        "give arrays of float32, as of array.astype('float32')",
    ),
    (
        r"as a Python `?bool`?",
        "a tensor has its value when the graph runs: use tf.where or tf.cond",
    ),
    (
        r"has no attribute 'numpy'|^float\(\) argument|^int\(\) argument",
        "a tensor has its value when the graph runs: return it among the outputs of loss(), or use "
        "tf.print",
    ),
    (
        r"Graph is finalized",
        "a run's graph is complete when hooks are called: compute by NumPy from what session.read "
        "returns, or return the tensor among the outputs of loss() and read it in a metric",
    ),
    (
        r"Cannot (batch|add) tensor",
        "dataset.padded_batch fills up elements that are not of one shape",
    ),
    (
        r"to a numpy array",
        "a tensor has its value when the graph runs: use functions of tf, or a metric of "
        "metrics(), which is given arrays of NumPy",
    ),
    (
        r"[Ii]terating over a.*[Tt]ensor",
        "a tensor has its values when the graph runs: use functions of whole tensors, or tf.map_fn",
    ),
    (
        r"has no attribute 'log(_dict|_metrics)?'",
        "return scalars among the outputs of loss(), or write them in a hook by run.writer.scalars",
    ),
    (
        r"has no attribute '(backward|item|detach)'|No gradients provided"
        r"|only supports Python-style iteration",
        "loss() returns the loss, and the run makes gradients and updates by optimizer()",
    ),
    (r"'labels' has DataType string", "number the labels, as by numpy.unique(return_inverse=True)"),
    (r"'labels' has DataType", "class ids are integers, as of array.astype('int32')"),
    (
        r"labels.shape.rank` must equal|Rank of labels|Rank mismatch",
        "class ids are [batch]: tf.squeeze(labels, 1) makes them of [batch, 1]; of one-hot labels "
        "take tf.nn.softmax_cross_entropy_with_logits",
    ),
    (
        r"\bu?int(8|16|32|64)\b.*\bfloat|\bfloat.*\bu?int(8|16|32|64)\b",
        "cast one of them by tf.cast",
    ),
    (
        r"must be rank 2 but is rank 1|min_ndim=2, found ndim=1"
        r"|\(None, ([\d, ]+?),?\), but .* incompatible shape \(\1,?\)",
        "a split of tf.data is of batches: end it with .batch(self.settings.batch_size)",
    ),
    (r"label value of .* outside the valid range", "labels are from 0 to the number of logits - 1"),
)


class Frame(NamedTuple):
    """A frame of a traceback: a line of a program, and the function that it is in."""

    file: str
    line: int
    function: str
    text: str

    @property
    def is_own(self) -> bool:
        """Whether the line is the user's own: not in Python, a package or this project."""
        is_file = os.path.isabs(self.file) or os.path.exists(self.file)
        return is_file and not os.path.realpath(self.file).startswith(_NOT_OWN)


def described(error: BaseException) -> str | None:
    """Returns the lines to print for an error in a user's function or stream; None for another.

    The first line has the place and the message. Then follow the frames in the user's program that
    the error came through or, if an operation of a graph failed, that made the operation.
    """
    own = [frame for frame in _raised(error) if frame.is_own]
    if not any(frame.function != "<module>" for frame in own):
        own = [frame for frame in _made(error) if frame.is_own]
    inside = [frame for frame in own if frame.function != "<module>"]
    if inside:
        last = inside[-1]
        place = f"{os.path.basename(last.file)}:{last.line}, in {last.function}"
    elif _OF_STREAM.search(str(error)):
        place = "in a stream of data()"  # A stream's operations do not record their lines.
    else:
        return None
    head = f"{place}: {_message(error)}"
    shown = [f'  File "{f.file}", line {f.line}, in {f.function}\n    {f.text}' for f in inside]
    return "\n".join([f"error: {head}", *shown, "--traceback shows all frames"])


def _raised(error: BaseException) -> Iterator[Frame]:
    """Yields the frames that an error has come through, the innermost last."""
    for frame in traceback.extract_tb(error.__traceback__):
        yield Frame(frame.filename, frame.lineno or 0, frame.name, frame.line or "")


def _made(error: BaseException) -> Sequence[Frame]:
    """Returns the frames in which an operation that failed in a graph was made."""
    names = [first or second for first, second in _NODE.findall(str(error))]
    is_check = FIRST_FAULT in str(error)  # Then `error.op` is the check, not the user's operation.
    operation = None if is_check else getattr(error, "op", None)
    graph = tf1.get_default_graph()
    for name in names if operation is None else ():
        # In a copy of a step, names have a scope in front of those in the program's graph.
        parts = name.split("/")
        for i in range(len(parts)):
            try:
                operation = operation or graph.get_operation_by_name("/".join(parts[i:]))
            except (KeyError, ValueError):
                continue
    found = getattr(operation, "traceback", None) or []
    return [
        frame._replace(text=frame.text or linecache.getline(frame.file, frame.line).strip())
        for frame in (Frame(*_fields(each)) for each in found)
    ]


def _fields(frame: Any) -> Sequence[Any]:
    """Returns file, line, function and text of a frame, a tuple until TensorFlow 2.2 or so."""
    if isinstance(frame, tuple):
        return frame[0], frame[1], frame[2], frame[3] or ""
    return frame.filename, frame.lineno, frame.name, frame.line or ""


def _message(error: BaseException) -> str:
    """Returns the type and the first line of an error, and a remedy if one is known."""
    text = _OF_TERMINAL.sub("", str(getattr(error, "message", "") or error)).strip()
    of_stream = _REASON.search(text) if _OF_STREAM.search(text) else None
    found = [of_stream[1]] if of_stream else _BEFORE.sub("", text).splitlines()
    lines = [_OF_ITERATOR.sub("", _OF_FUNCTION.sub("", line)) for line in found]
    first = next((line for line in lines if not _NO_REASON.match(line)), "")
    first = _OF_NODE.sub(lambda found: found[1] or "", first).strip()
    first = first.partition(".  ")[0]  # TensorFlow lists values after that.
    if len(first) > _MOST_CHARACTERS:
        first = first[:_MOST_CHARACTERS].rpartition(" ")[0] + " ..."
    remedies = [remedy for pattern, remedy in _REMEDIES if re.search(pattern, text)][:1]
    hints = [*_names(error), *remedies]
    if hints:
        first = first.partition(". ")[0]  # TensorFlow's advice after that is for other programs.
    said = f"{type(error).__name__}: {first}".rstrip(": ")
    return "; ".join([said.rstrip("."), *hints])


def _names(error: BaseException) -> Iterator[str]:
    """Yields a hint if a user's line has a wrong key of a mapping: the keys of that mapping.

    If the line has a key of a batch that is not a mapping, the hint is how to name its parts.
    """
    own = [
        (frame.f_locals, line)
        for frame, number in traceback.walk_tb(error.__traceback__)
        for line in [linecache.getline(frame.f_code.co_filename, number)]
        if Frame(frame.f_code.co_filename, number, frame.f_code.co_name, line).is_own
    ]
    values, line = own[-1] if own else ({}, "")
    for name, value in values.items():
        if f"{name}[" not in line:
            continue
        if isinstance(error, KeyError) and isinstance(value, Mapping) and value:
            yield f"{name} has {', '.join(map(str, value))}"
        elif isinstance(error, TypeError) and name == "batch" and not isinstance(value, Mapping):
            kind = "tuple" if isinstance(value, tuple) else "tensor"
            how = "x, y: {'x': x, 'y': y}" if isinstance(value, tuple) else "x: {'x': x}"
            yield f"batch is a {kind}: name what the dataset has, as by map(lambda {how})"
