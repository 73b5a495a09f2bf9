"""Export strategies of `tf.contrib.learn`, which write a SavedModel."""

from __future__ import annotations

import collections
from typing import Any, Callable

from compat._tensorflow import tf1
from compat.scripts.contrib.learn_run import tf_estimator

build_parsing_serving_input_fn = tf_estimator.export.build_parsing_serving_input_receiver_fn
build_default_serving_input_fn = tf_estimator.export.build_raw_serving_input_receiver_fn


class ExportStrategy(collections.namedtuple("ExportStrategy", ["name", "export_fn"])):
    """A named function that exports an estimator to a folder."""

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any = None, eval_result: Any = None
    ) -> Any:
        """Exports the estimator; returns the folder."""
        return self.export_fn(estimator, export_path, checkpoint_path)


def InputFnOps(features: Any, labels: Any = None, default_inputs: Any = None) -> Any:
    """Returns the serving input receiver of `tf.estimator` for the inputs of a serving function."""
    return tf_estimator.export.ServingInputReceiver(features, default_inputs or features)


def make_export_strategy(serving_input_fn: Callable[[], Any], **kwargs: Any) -> ExportStrategy:
    """Returns a strategy that exports a SavedModel."""
    as_text = bool(kwargs.get("as_text", False))

    def export(estimator: Any, path: str, checkpoint: str | None = None) -> Any:
        core = getattr(estimator, "core", estimator)
        return core.export_saved_model(
            path, serving_input_fn, as_text=as_text, checkpoint_path=checkpoint
        )

    return ExportStrategy("Servo", export)


def get_most_recent_export(export_dir_base: str) -> str | None:
    """Returns the folder of the latest export, or None."""
    found = [name.rstrip("/") for name in tf1.gfile.ListDirectory(export_dir_base)]
    newest = max((name for name in found if name.isdigit()), key=int, default=None)
    return f"{export_dir_base}/{newest}" if newest else None
