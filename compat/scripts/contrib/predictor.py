"""`tf.contrib.predictor`: runs a SavedModel on arrays."""

from __future__ import annotations

from typing import Any, Mapping

from compat._tensorflow import tf1


class Predictor:
    """Runs a signature of a SavedModel.

    Attributes:
      session: the session with the loaded model.
      graph: the graph of the model.
      feed_tensors: input tensors by name.
      fetch_tensors: output tensors by name.
    """

    def __init__(self, session: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self.session, self.graph = session, session.graph
        self.feed_tensors, self.fetch_tensors = dict(inputs), dict(outputs)

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
    """Returns the predictor of a SavedModel, for a signature or for tensor names.

    Args:
      export_dir: folder of the model.
      signature_def_key: key of the signature; None for the default.
      signature_def: the signature itself.
      input_names: tensor names of the inputs, by name.
      output_names: tensor names of the outputs, by name.
      tags: tags of the model, separated by commas; None for "serve".
      graph: graph to load the model into; None for a new one.
      config: configuration of the session.
    """
    graph = graph or tf1.Graph()
    with graph.as_default():
        session = tf1.Session(config=config)
        words = tags.split(",") if isinstance(tags, str) else list(tags or ["serve"])
        loaded = tf1.saved_model.loader.load(session, words, export_dir)
    key = signature_def_key or "serving_default"
    if input_names is None or output_names is None:
        signature = signature_def or loaded.signature_def[key]
        input_names = {name: info.name for name, info in signature.inputs.items()}
        output_names = {name: info.name for name, info in signature.outputs.items()}
    find = graph.get_tensor_by_name
    return Predictor(
        session,
        {name: find(tensor) for name, tensor in input_names.items()},
        {name: find(tensor) for name, tensor in output_names.items()},
    )
