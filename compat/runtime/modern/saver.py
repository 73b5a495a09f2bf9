"""The saver of the modern runtime: TensorFlow's own, which is given values, not operations."""

from __future__ import annotations

import inspect
from typing import Any, Mapping

import numpy as np

from compat._tensorflow import quietly, tf1
from compat.checkpoint.files import NotFiniteError, fitted, read, write
from compat.checkpoint.saver import Saver, named, step_number, user_errors
from compat.errors import UserError, UserTypeError
from compat.runtime.interface import current_runtime
from compat.runtime.modern.hook_graph import eagerly

_REFUSED = {"reshape": False, "saver_def": None, "builder": None, "write_version": 2}


class _Writer:
    """Writes values at once, where a builder of TensorFlow's would make operations for it."""

    def _build_internal(
        self,
        values: Mapping[str, np.ndarray],
        *,
        filename: str,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float,
        **_: Any,
    ) -> Any:
        slices = current_runtime().slices()
        # A whole of which only some parts are saved could not be read.
        torn = {part.full_name for name, part in slices.items() if name not in values}
        write(filename, values, {n: p for n, p in slices.items() if p.full_name not in torn})
        return tf1.train.SaverDef(
            save_tensor_name=filename,
            max_to_keep=max_to_keep or 0,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=tf1.train.SaverDef.V2,
        )


class ModernSaver(tf1.train.Saver, Saver):
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
            values = _session(sess).read(variables)
            for name, value in values.items():
                # Other variables may well hold it, such as the best loss so far.
                trained = getattr(variables[name], "trainable", True)
                floating = np.issubdtype(value.dtype, np.floating)
                if trained and floating and not np.isfinite(value).all():
                    raise NotFiniteError(NotFiniteError.TEXT.format(name))
            # That of the values: other workers may have made updates since.
            own = values.get(getattr(global_step, "name", "").rpartition(":")[0])
            number = step_number(sess, global_step) if own is None else int(own.item())
            self._var_list = values
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
        values = fitted(save_path, read(save_path), variables, others=True)
        eagerly(lambda: _session(sess).assign(variables, values))


def _session(given: Any) -> Any:
    # Hooks save by a session that is one but for its name.
    if not (hasattr(given, "read") and hasattr(given, "assign")):
        raise UserTypeError(
            f"sess is {given!r}; pass the session of a compat.Supervisor, which the modern "
            "runtime needs"
        )
    return given
