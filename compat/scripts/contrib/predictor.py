"""`tf.contrib.predictor`: runs a SavedModel on arrays."""

from __future__ import annotations

from typing import Any, Mapping

from compat._tensorflow import tf1


class Predictor:
    """Runs the tensors of a loaded model, which are given by name."""

    def __init__(self, session: Any, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        self.session, self.graph = session, session.graph
        find = self.graph.get_tensor_by_name
        self.feed_tensors = {name: find(tensor) for name, tensor in inputs.items()}
        self.fetch_tensors = {name: find(tensor) for name, tensor in outputs.items()}

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs by name for inputs by name."""
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
    """Returns the predictor of a SavedModel, for tensor names or else for a signature."""
    with (graph or tf1.Graph()).as_default():
        session = tf1.Session(config=config)
        words = tags.split(",") if isinstance(tags, str) else list(tags or ["serve"])
        loaded = tf1.saved_model.loader.load(session, words, export_dir)
    if input_names is None or output_names is None:
        signature = signature_def or loaded.signature_def[signature_def_key or "serving_default"]
        input_names = {name: info.name for name, info in signature.inputs.items()}
        output_names = {name: info.name for name, info in signature.outputs.items()}
    return Predictor(session, input_names, output_names)
