"""`tf.contrib.session_bundle.exporter` and `tf.contrib.predictor`: write and run SavedModels."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, NamedTuple

from compat._tensorflow import tf1

_constants: Any = tf1.saved_model.signature_constants


class Export(NamedTuple):
    """A folder with a SavedModel, and its number: a step, or a time in seconds."""

    path: str
    export_version: int


def exports(folder: str) -> list[Export]:
    """Returns the SavedModels in a folder, in arbitrary order."""
    names = [name.rstrip("/") for name in tf1.gfile.ListDirectory(folder)]
    return [Export(os.path.join(folder, name), int(name)) for name in names if name.isdigit()]


def classification_signature(
    input_tensor: Any, classes_tensor: Any = None, scores_tensor: Any = None
) -> Any:
    """Returns the signature of a classifier."""
    outputs = {"classes": classes_tensor, "scores": scores_tensor}
    present = {name: tensor for name, tensor in outputs.items() if tensor is not None}
    return _signature({"inputs": input_tensor}, present, _constants.CLASSIFY_METHOD_NAME)


def regression_signature(input_tensor: Any, output_tensor: Any) -> Any:
    """Returns the signature of a regressor."""
    outputs = {"outputs": output_tensor}
    return _signature({"inputs": input_tensor}, outputs, _constants.REGRESS_METHOD_NAME)


def generic_signature(name_tensor_map: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a signature that maps names to tensors.

    If `Exporter.init` receives two such signatures, named "inputs" and "outputs", it combines them
    into the default signature.
    """
    return dict(name_tensor_map)


def _signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str) -> Any:
    info = tf1.saved_model.build_tensor_info
    return tf1.saved_model.build_signature_def(
        {name: info(tensor) for name, tensor in inputs.items()},
        {name: info(tensor) for name, tensor in outputs.items()},
        method,
    )


class Exporter:
    """Exports a model with the values that variables have in a session."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self._signatures: dict[str, Any] = {}
        self._init_op: Any = None
        self._clear_devices = False

    def init(
        self,
        graph_def: Any = None,
        init_op: Any = None,
        clear_devices: bool = False,
        default_graph_signature: Any = None,
        named_graph_signatures: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        assets_callback: Callable[..., Any] | None = None,
    ) -> None:
        """Sets the signatures, the operation to run on loading, and whether devices are cleared.

        Other arguments are ignored.
        """
        self._init_op, self._clear_devices = init_op, clear_devices
        named = dict(named_graph_signatures or {})
        key = _constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if {"inputs", "outputs"} <= set(named):
            inputs, outputs = named.pop("inputs"), named.pop("outputs")
            if isinstance(inputs, dict) and isinstance(outputs, dict):
                method = _constants.PREDICT_METHOD_NAME
                named.setdefault(key, _signature(inputs, outputs, method))
        if default_graph_signature is not None:
            named[key] = default_graph_signature
        for name, signature in named.items():
            is_map = isinstance(signature, dict)
            self._signatures[name] = _signature({}, signature, "") if is_map else signature

    def export(
        self,
        export_dir_base: str,
        global_step_tensor: Any,
        sess: Any = None,
        exports_to_keep: Callable[[list[Export]], list[Export]] | None = None,
    ) -> str:
        """Writes to the folder `export_dir_base`/00000123 for step 123; returns its path."""
        sess = sess or tf1.get_default_session()
        step = int(tf1.train.global_step(sess, global_step_tensor))
        path = os.path.join(export_dir_base, f"{step:08d}")
        if tf1.gfile.Exists(path):
            raise RuntimeError(
                "Overwriting exports can cause corruption and are not allowed. "
                f"Duplicate export dir: {path}"
            )
        builder = tf1.saved_model.Builder(path)
        with sess.graph.as_default():
            builder.add_meta_graph_and_variables(
                sess,
                [tf1.saved_model.tag_constants.SERVING],
                signature_def_map=self._signatures,
                main_op=self._init_op,
                clear_devices=self._clear_devices,
                saver=self._saver,
            )
        builder.save()
        if exports_to_keep is not None:
            kept = {export.path for export in exports_to_keep(exports(export_dir_base))}
            for other in exports(export_dir_base):
                if other.path not in kept:
                    tf1.gfile.DeleteRecursively(other.path)
        return path


def gfile_copy_callback(files_to_copy: Mapping[str, str], export_dir_path: str) -> None:
    """Copies files into the folder of an export."""
    tf1.gfile.MakeDirs(export_dir_path)
    for source, target in files_to_copy.items():
        tf1.gfile.Copy(source, os.path.join(export_dir_path, target), overwrite=True)


class Predictor:
    """Runs the tensors of a loaded model by name."""

    def __init__(self, session: Any, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        self.session, self.graph = session, session.graph
        find = self.graph.get_tensor_by_name
        self.feed_tensors = {name: find(tensor) for name, tensor in inputs.items()}
        self.fetch_tensors = {name: find(tensor) for name, tensor in outputs.items()}

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        feed = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        return dict(self.session.run(self.fetch_tensors, feed))


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: Any = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """Returns the predictor of a SavedModel, for the given tensor names or else for a signature."""
    with (graph or tf1.Graph()).as_default():
        session = tf1.Session(config=config)
        words = tags.split(",") if isinstance(tags, str) else list(tags or ["serve"])
        loaded = tf1.saved_model.loader.load(session, words, export_dir)
    if input_names is None or output_names is None:
        signature = signature_def or loaded.signature_def[signature_def_key or "serving_default"]
        input_names = {name: info.name for name, info in signature.inputs.items()}
        output_names = {name: info.name for name, info in signature.outputs.items()}
    return Predictor(session, input_names, output_names)
