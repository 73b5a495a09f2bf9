"""Functions and classes of scikit-learn as they were until 0.21, for scripts."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable

import numpy as np


def _sklearn(module: str) -> Any:
    return importlib.import_module(f"sklearn.{module}")


def _splitter(kind: str, count: str = "") -> Callable[..., Any]:
    """Returns a class of `cross_validation`, which takes the labels, or the number of examples.

    It gives a list of pairs of indices: of the training set, and of the test set.
    """

    def split(*args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        given = [kwargs.pop(name) for name in ("n", "y", "labels") if name in kwargs]
        data, *args = [*given, *args]  # type: ignore[assignment]
        kwargs.update(zip([count] if count else [], args))
        options = {"n_splits" if key == count else key: value for key, value in kwargs.items()}
        if not options.get("shuffle", True) or "shuffle" not in options and count == "n_folds":
            options.pop("random_state", None)  # Had no effect; an error today.
        if count == "n_folds":
            options.setdefault("n_splits", 3)
        labels = None if isinstance(data, (int, np.integer)) else np.asarray(data)
        places = np.zeros(int(data) if labels is None else len(labels))
        chosen = getattr(_sklearn("model_selection"), kind)(**options)
        return list(chosen.split(places, labels, labels if kind == "GroupKFold" else None))

    split.__name__ = kind
    return split


KFold = _splitter("KFold", "n_folds")
LabelKFold = _splitter("GroupKFold", "n_folds")
LeaveOneOut = _splitter("LeaveOneOut")
ShuffleSplit = _splitter("ShuffleSplit", "n_iter")
StratifiedKFold = _splitter("StratifiedKFold", "n_folds")
StratifiedShuffleSplit = _splitter("StratifiedShuffleSplit", "n_iter")


def GMM(n_components: int = 1, covariance_type: str = "diag", **options: Any) -> Any:
    """Returns a mixture of normal distributions."""
    options = {{"n_iter": "max_iter"}.get(key, key): value for key, value in options.items()}
    return _sklearn("mixture").GaussianMixture(
        n_components, covariance_type=covariance_type, **options
    )


def Imputer(
    missing_values: Any = "NaN", strategy: str = "mean", axis: int = 0, **options: Any
) -> Any:
    """Returns what replaces missing values; raises ValueError for `axis=1`."""
    if axis != 0:
        raise ValueError("Imputer(axis=1) has no successor in scikit-learn; transpose the data")
    options.pop("verbose", None)
    missing = np.nan if missing_values == "NaN" else missing_values
    return _sklearn("impute").SimpleImputer(missing_values=missing, strategy=strategy, **options)


def RandomizedPCA(n_components: Any = None, **options: Any) -> Any:
    """Returns a principal component analysis by random projections."""
    return _sklearn("decomposition").PCA(n_components, svd_solver="randomized", **options)


def OneHotEncoder(n_values: Any = "auto", sparse: Any = None, **options: Any) -> Any:
    """Returns an encoder; accepts the number of values, of all columns or of each."""
    encoder = _sklearn("preprocessing").OneHotEncoder(**options)
    if sparse is not None:
        name = "sparse_output" if hasattr(encoder, "sparse_output") else "sparse"
        encoder.set_params(**{name: sparse})
    if not isinstance(n_values, str):
        fit = encoder.fit

        def fit_to_columns(X: Any, *args: Any) -> Any:
            sizes = np.broadcast_to(n_values, np.shape(X)[1])
            encoder.set_params(categories=[*map(np.arange, sizes)])
            return fit(X, *args)

        encoder.fit = fit_to_columns
    return encoder


def mean_squared_error(*args: Any, squared: bool = True, **options: Any) -> Any:
    """Returns the mean of the squared errors, or its root."""
    metrics = _sklearn("metrics")
    if squared:
        return metrics.mean_squared_error(*args, **options)
    if hasattr(metrics, "root_mean_squared_error"):  # Since 1.4.
        return metrics.root_mean_squared_error(*args, **options)
    return metrics.mean_squared_error(*args, squared=False, **options)


def install() -> None:
    """Adds what is gone from matrices of SciPy and from vectorizers, of those that are loaded."""
    for module, owner, name, value in (
        ("scipy.sparse", "spmatrix", "A", property(lambda self: self.toarray())),
        ("scipy.sparse", "spmatrix", "H", property(lambda self: self.conj().T)),
        (
            "sklearn.feature_extraction.text",
            "CountVectorizer",
            "get_feature_names",
            lambda self: list(self.get_feature_names_out()),
        ),
    ):
        kind = getattr(sys.modules.get(module), owner, None)
        if kind is not None and not hasattr(kind, name):
            setattr(kind, name, value)


def _display(name: str) -> Any:
    def plot(estimator: Any, X: Any, y: Any, **options: Any) -> Any:
        """Returns the picture of a trained classifier, drawn by Matplotlib."""
        return getattr(_sklearn("metrics"), name).from_estimator(estimator, X, y, **options)

    return plot


plot_confusion_matrix = _display("ConfusionMatrixDisplay")
plot_precision_recall_curve = _display("PrecisionRecallDisplay")
plot_roc_curve = _display("RocCurveDisplay")


def linear_assignment(X: Any) -> Any:
    """Returns the cheapest pairs of rows and columns of a matrix of costs, int `[pairs, 2]`."""
    return np.transpose(importlib.import_module("scipy.optimize").linear_sum_assignment(X))
