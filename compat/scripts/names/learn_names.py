"""The entries of the table for `tf.contrib.learn`."""

from __future__ import annotations

from typing import Mapping

_OWN = "compat.scripts.contrib."
_INPUTS = "tensorflow_estimator._api.v1.estimator.inputs:"
_EXPORT = (_OWN + "learn_run:", "it writes a SavedModel")
_READ = ("", "its file queues are gone; use tf.train.batch or tf.data")


def _modules() -> dict[str, tuple[str, str]]:
    """Returns the modules that exist in `tf.contrib.learn` and `tf.contrib.learn.python.learn`."""
    found: dict[str, tuple[str, str]] = {"": (_OWN + "learn:", "")}
    for name, module in (
        ("datasets", "learn_datasets"),
        ("datasets.base", "learn_datasets"),
        ("estimators", "learn"),
        ("estimators.estimator", "learn_estimators"),
        ("estimators.model_fn", "learn_estimators"),
        ("estimators.prediction_key", "learn_metrics"),
        ("estimators.run_config", "learn_run"),
        ("experiment", "learn_run"),
        ("export_strategy", "learn_run"),
        ("learn_runner", "learn_run"),
        ("metric_spec", "learn_metrics"),
        ("monitors", "learn_monitors"),
        ("preprocessing", "learn_preprocessing"),
        ("preprocessing.text", "learn_preprocessing"),
        ("utils", "learn_run"),
        ("utils.input_fn_utils", "learn_run"),
        ("utils.saved_model_export_utils", "learn_run"),
    ):
        found["." + name] = (f"{_OWN}{module}:", "")
    for name in ("datasets.mnist", "datasets.mnist.input_data"):
        found["." + name] = ("compat.scripts.tutorials.input_data:", "")
    for name in ("numpy_input_fn", "pandas_input_fn"):
        found[".io." + name] = (_INPUTS + name, "")
    for name in ("read_batch_examples", "read_batch_features", "read_batch_record_features"):
        found["." + name] = found[".io." + name] = _READ
    for name in ("ExportStrategy", "InputFnOps", "make_export_strategy"):
        found["." + name] = (_EXPORT[0] + name, _EXPORT[1])
    found[".KMeansClustering"] = ("", "TensorFlow removed its kernels")
    found[".SVM"] = ("", "no estimator supports dual coordinate ascent any more")
    found[".TensorFlowDNNClassifier"] = ("", "0.11 removed it; use DNNClassifier")
    found[".graph_actions"] = ("", "estimators train with monitored sessions since 1.0")
    return found


# Name after "tf.contrib.learn": what serves it, and a note.
NAMES: Mapping[str, tuple[str, str]] = {
    **{".python.learn" + name: served for name, served in _modules().items()},
    **_modules(),
}
