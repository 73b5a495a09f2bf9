"""The saver of the modern runtime: TensorFlow's own, which is given values, not operations."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from compat._tensorflow import quietly, tf1
from compat.checkpoint import pieces
from compat.checkpoint.files import NotFiniteError, fitted, read, write_parts
from compat.checkpoint.literal_saver import LiteralSaver
from compat.errors import UserError, UserTypeError
from compat.runtime.interface import current_runtime
from compat.runtime.modern.hook_graph import eagerly
from compat.runtime.modern.rows import Rows
from compat.runtime.saver import Saver, named, step_number, user_errors

_REFUSED = {"reshape": False, "saver_def": None, "builder": None, "write_version": 2}


class _Writer:
    """Writes values at once, where a builder of TensorFlow's would make operations for it."""

    def _build_internal(
        self,
        parts: Sequence[Callable[[], Mapping[Any, np.ndarray]]],
        *,
        filename: str,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float,
        **_: Any,
    ) -> Any:
        write_parts(filename, parts)
        return tf1.train.SaverDef(
            save_tensor_name=filename,
            max_to_keep=max_to_keep or 0,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=tf1.train.SaverDef.V2,
        )


class ModernSaver(LiteralSaver, Saver):
    """TensorFlow's names, rotation and lists of checkpoints, whose values the session reads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = inspect.signature(tf1.train.Saver.__init__).bind(self, *args, **kwargs).arguments
        for name, value in _REFUSED.items():
            if given.get(name, value) != value:
                raise UserError(
                    f"{name}={given[name]!r} of compat.Saver is not available on the modern "
                    "runtime, which has no graph; leave it out, or use --runtime=legacy"
                )
        self._given = given.pop("var_list", None)
        for name in ("self", "builder", "defer_build"):
            given.pop(name, None)
        make = super().__init__
        with quietly():  # Eagerly: in a graph, such as that of hooks, it would wait for `build`.
            eagerly(lambda: make({}, builder=_Writer(), **given))

    def build(self) -> None:
        """Does nothing: there is no graph."""

    def export_meta_graph(self, *args: Any, **kwargs: Any) -> Any:
        """Raises a `UserError`: there is no graph."""
        raise UserError(
            "export_meta_graph() needs a graph, which the modern runtime does not have; use "
            "--runtime=legacy"
        )

    def variables(self) -> dict[str, Any]:
        return current_runtime().variables() if self._given is None else named(self._given)

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        **kwargs: Any,
    ) -> Any:
        del write_meta_graph, kwargs  # There is no graph.

        def save() -> Any:
            variables = self.variables()
            if not variables and self._allow_empty:
                return None
            first, *others = [
                functools.partial(_read, _session(sess), variables, batch)
                for batch in list(pieces.batches(_members(variables))) or [[]]
            ]
            values = first()  # The smallest, the step among them.
            # That of the values: other workers may have made updates since.
            own = values.get((getattr(global_step, "name", "").rpartition(":")[0], ""))
            number = step_number(sess, global_step) if own is None else int(own.item())
            self._var_list = [lambda: values, *others]
            path = tf1.compat.as_str(save_path)
            with user_errors("correct the arguments of save()"), quietly():
                with self._writing(path if number is None else f"{path}-{number}"):
                    more = (latest_filename, meta_graph_suffix, False, write_state)
                    saved = tf1.train.Saver.save(self, None, path, number, *more)
                if write_state:
                    self._list_all(saved, latest_filename)
            return saved

        return eagerly(save)

    def restore(self, sess: Any, save_path: Any) -> None:
        variables = self.variables()
        values = fitted(
            save_path,
            read(save_path, large=False),
            variables,
            current_runtime().slices(),
            others=True,
        )
        eagerly(lambda: _session(sess).assign(variables, values))


class _Member(NamedTuple):
    """Of what is saved at a time: a variable, or rows of it."""

    name: str
    key: tuple[str, str]  # Its name in the checkpoint, and the slice that it is of that.
    fetch: Any


def _members(variables: Mapping[str, Any]) -> Iterator[tuple[_Member, int]]:
    """Yields what is saved at a time, and its bytes; the smallest variables first."""
    runtime: Any = current_runtime()
    placement = runtime.placement
    slices = placement.slices()
    # A whole of which only some parts are saved could not be read.
    torn = {part.full_name for name, part in slices.items() if name not in variables}

    def size(name: str) -> int:
        variable = variables[name]
        return pieces.size(variable.shape.as_list(), variable.dtype.as_numpy_dtype)

    for name in sorted(variables, key=size):
        variable, part = variables[name], slices.get(name)
        whole, spec = name, ""
        if part is not None and part.full_name not in torn:
            whole, spec = part.full_name, part.spec
        if size(name) <= pieces.PIECE_BYTES or not placement.is_table(variable):
            yield _Member(name, (whole, spec), variable), size(name)
            continue
        shape, dtype = variable.shape.as_list(), variable.dtype.as_numpy_dtype
        for piece in pieces.cut(shape, dtype, spec):
            yield _Member(name, (whole, piece.spec), Rows(variable, piece)), piece.bytes


def _read(
    session: Any, variables: Mapping[str, Any], batch: Sequence[_Member]
) -> dict[tuple[str, str], np.ndarray]:
    """Returns the values of a batch by key.

    Raises:
      NotFiniteError: one of a trainable variable is not.
    """
    values: dict[tuple[str, str], np.ndarray] = session.read({m.key: m.fetch for m in batch})
    for member in batch:
        value = values[member.key]
        # Other variables may well hold it, such as the best loss so far.
        variable = variables[member.name]
        trained = getattr(variable, "trainable", True)
        floating = np.issubdtype(value.dtype, np.floating)
        if trained and floating and not np.isfinite(value).all():
            runtime: Any = current_runtime()
            if runtime.placement.begins_infinite(variable):
                continue
            raise NotFiniteError(NotFiniteError.TEXT.format(member.name))
    return values


def _session(given: Any) -> Any:
    # Hooks save by a session that is one but for its name.
    if not (hasattr(given, "read") and hasattr(given, "assign")):
        raise UserTypeError(
            f"sess is {given!r}; pass the session of a compat.Supervisor, which the modern "
            "runtime needs"
        )
    return given
