"""Exports of `tf.contrib.learn` estimators: strategies that write SavedModels."""

from __future__ import annotations

import collections
from typing import Any, Callable

from compat._tensorflow import tf1
from compat.contrib.saved_models import Export, exports
from compat.estimator.package import names as tf_estimator

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
    """Returns the `ServingInputReceiver` of `tf.estimator` for these inputs; ignores `labels`."""
    return tf_estimator.export.ServingInputReceiver(features, default_inputs or features)


def make_export_strategy(
    serving_input_fn: Callable[[], Any], exports_to_keep: int | None = 5, **kwargs: Any
) -> ExportStrategy:
    """Returns a strategy that exports a SavedModel, and removes old ones."""
    options = {key: kwargs[key] for key in ("as_text", "assets_extra") if key in kwargs}

    def export(estimator: Any, path: str, checkpoint: str | None = None) -> Any:
        core = getattr(estimator, "core", estimator)
        folder = core.export_saved_model(
            path, serving_input_fn, checkpoint_path=checkpoint, **options
        )
        garbage_collect_exports(path, exports_to_keep)
        return folder

    return ExportStrategy("Servo", export)


def get_most_recent_export(export_dir_base: str) -> Export | None:
    """Returns the latest export, or None."""
    return max(exports(export_dir_base), key=lambda export: export.export_version, default=None)


def garbage_collect_exports(export_dir_base: str, exports_to_keep: int | None) -> None:
    """Removes all but the latest `exports_to_keep` exports; None keeps all."""
    ordered = sorted(exports(export_dir_base), key=lambda export: export.export_version)
    for old in ordered[: -exports_to_keep if exports_to_keep else 0]:
        tf1.gfile.DeleteRecursively(old.path)
