"""The saver of a program's graph: TensorFlow's own, whose operations refuse NaN."""

from __future__ import annotations

import re
from typing import Any, Callable

from compat._tensorflow import private, tf, tf1
from compat.checkpoint import foreign
from compat.checkpoint.files import NotFiniteError, finish, unfinished
from compat.checkpoint.literal_names import readable
from compat.checkpoint.literal_saver import LiteralSaver
from compat.runtime.interface import current_server
from compat.runtime.program.saver_builder import SaverBuilder
from compat.runtime.saver import Saver, named, step_number, user_errors

_NOT_FINITE = re.compile(NotFiniteError.TEXT.format(r"\S+"))
_REMEDY = (
    "make a saver after its variables and before the session, with the arguments of tf.train.Saver"
)


class _NamingSession(private.session_interface()):  # type: ignore[misc]
    """A session for a saver, which names complete files after the global step that they contain.

    TensorFlow reads the step before it saves, and other workers may update the variables in
    between. The files are written to another folder, since a checkpoint of that name may exist.
    """

    def __init__(self, session: Any, step_name: str | None, name: Callable[[int], str]) -> None:
        self._session, self._step_name, self._name = session, step_name, name

    @property
    def graph(self) -> Any:
        return self._session.graph

    def run(self, fetches: Any, feed_dict: Any, **kwargs: Any) -> Any:
        """Runs the save operation; returns the prefix of the files."""
        ((filename, prefix),) = feed_dict.items()
        with unfinished(prefix) as begun:
            self._session.run(fetches, {filename: begun}, **kwargs)
            if self._step_name is not None:
                with readable(begun) as path:
                    reader = tf1.train.NewCheckpointReader(path)
                    if reader.has_tensor(self._step_name):
                        prefix = self._name(int(reader.get_tensor(self._step_name).item()))
            finish(begun, prefix)
        return prefix


Saver.register(tf1.train.Saver)  # `import_meta_graph` returns such a saver.


class ProgramSaver(LiteralSaver, Saver):
    """TensorFlow's saver, whose files are written by the task that creates it, the chief."""

    _builder: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with user_errors(_REMEDY):
            super().__init__(*args, **kwargs)

    def build(self) -> None:
        with user_errors(_REMEDY):
            if self._builder is None and self.saver_def is None:
                self._builder = SaverBuilder(self._write_version)
            server = current_server()
            # Without this device, operations could be placed on a parameter server's disk.
            with tf1.device("" if server is None else server.task.name):
                tf1.train.Saver.build(self)

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
        with user_errors("correct the arguments of save()"):
            save_path = tf1.compat.as_str(save_path)

            def name(step: int) -> str:
                return f"{save_path}-{step:0{8 if self._pad_step_number else 0}d}"

            if isinstance(sess, tf1.Session):
                step_name = getattr(global_step, "name", global_step)
                global_step = step_number(sess, global_step)
                is_v2 = self._write_version == tf1.train.SaverDef.V2
                stored = step_name.rpartition(":")[0] if isinstance(step_name, str) else None
                # Servers without a common folder write to the same path on their own disks.
                is_apart = stored is None and self.saver_def is not None and self.saver_def.sharded
                if is_v2 and not is_apart:
                    sess = _NamingSession(sess, stored, name)
            prefix = save_path if global_step is None else name(global_step)
            try:
                with self._writing(prefix):
                    saved = tf1.train.Saver.save(
                        self,
                        sess,
                        save_path,
                        global_step,
                        latest_filename,
                        meta_graph_suffix,
                        write_meta_graph,
                        write_state,
                        **kwargs,
                    )
            except tf1.errors.InvalidArgumentError as error:
                refused = _NOT_FINITE.search(str(error))
                if refused is None:
                    raise
                raise NotFiniteError(refused.group()) from error
            meta = f"{prefix}.{meta_graph_suffix}"
            if saved not in (prefix, None) and tf1.gfile.Exists(meta):
                tf1.gfile.Copy(meta, f"{saved}.{meta_graph_suffix}", overwrite=True)
                if not tf1.gfile.Exists(f"{prefix}.index"):
                    tf1.gfile.Remove(meta)
            if write_state:
                self._list_all(saved, latest_filename)
            return saved

    def restore(self, sess: Any, save_path: Any) -> None:
        with user_errors(
            "pass the prefix of a checkpoint, such as tf.train.latest_checkpoint returns"
        ), foreign.reported(self, save_path), readable(tf1.compat.as_str(save_path)) as path:
            tf1.train.Saver.restore(self, sess, path)

    def variables(self) -> dict[str, Any] | None:
        if not self._var_list:  # The saver is of a `saver_def`, or there are no variables.
            return None
        listed = self._var_list
        each = listed.values() if isinstance(listed, dict) else listed
        # The list may also have tables, iterators, and lists of parts of a variable.
        return named(listed) if all(isinstance(v, tf.Variable) for v in each) else None
