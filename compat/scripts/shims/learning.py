"""Functions and classes of scikit-learn as they were until 0.21, for scripts."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable

import numpy as np


def _sklearn(module: str) -> Any:
    return importlib.import_module(f"sklearn.{module}")


class _Splits(list):  # type: ignore[type-arg]
    """Pairs of indices: those of the training set, and those of the test set.

    Attributes:
      n: The number of examples.
      n_folds: The number of pairs.
      n_iter: The same number.
    """

    def __init__(self, pairs: Any, n: int) -> None:
        super().__init__(pairs)
        self.n, self.n_folds, self.n_iter = n, len(self), len(self)


def _splitter(kind: str, count: str = "") -> Callable[..., Any]:
    """Returns a class of `cross_validation`, which takes the labels or the number of examples."""

    def split(*args: Any, **kwargs: Any) -> _Splits:
        sources = [kwargs.pop(name) for name in ("n", "y", "labels") if name in kwargs]
        data, *args = [*sources, *args]  # type: ignore[assignment]
        kwargs.update(zip([count] if count else [], args))
        options = {"n_splits" if key == count else key: value for key, value in kwargs.items()}
        if not options.get("shuffle", True) or "shuffle" not in options and count == "n_folds":
            options.pop("random_state", None)  # It had no effect; today it is an error.
        if count == "n_folds":
            options.setdefault("n_splits", 3)
        labels = None if isinstance(data, (int, np.integer)) else np.asarray(data)
        places = np.zeros(int(data) if labels is None else len(labels))
        chosen = getattr(_sklearn("model_selection"), kind)(**options)
        pairs = chosen.split(places, labels, labels if kind == "GroupKFold" else None)
        return _Splits(pairs, len(places))

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
    """Returns a transformer that replaces missing values; raises ValueError for `axis=1`."""
    if axis != 0:
        raise ValueError("Imputer(axis=1) has no successor in scikit-learn; transpose the data")
    options.pop("verbose", None)
    missing = np.nan if missing_values == "NaN" else missing_values
    return _sklearn("impute").SimpleImputer(missing_values=missing, strategy=strategy, **options)


def RandomizedPCA(n_components: Any = None, **options: Any) -> Any:
    """Returns a principal component analysis by random projections."""
    return _sklearn("decomposition").PCA(n_components, svd_solver="randomized", **options)


def OneHotEncoder(
    n_values: Any = "auto", categorical_features: Any = None, sparse: Any = None, **options: Any
) -> Any:
    """Returns an encoder; accepts the number of values, for all columns or for each.

    Only the columns in `categorical_features`, an array of indices or a mask, are encoded; they
    come first in the result.
    """
    if categorical_features is not None and not isinstance(categorical_features, str):
        encoder = OneHotEncoder(n_values, None, sparse, **options)
        chosen = np.asarray(categorical_features)
        columns = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return _sklearn("compose").ColumnTransformer(
            [("encoded", encoder, columns.tolist())],
            remainder="passthrough",
            sparse_threshold=0 if sparse is False else 1,
        )
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
    """Returns the mean of the squared errors, or its square root."""
    metrics = _sklearn("metrics")
    if squared:
        return metrics.mean_squared_error(*args, **options)
    if hasattr(metrics, "root_mean_squared_error"):  # scikit-learn 1.4 introduced it.
        return metrics.root_mean_squared_error(*args, **options)
    return metrics.mean_squared_error(*args, squared=False, **options)


class _Normalizes:
    """Adds `normalize=True`, an option of 2018, to a linear model of today."""

    _today: Any

    def __init__(self, *args: Any, normalize: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.normalize = normalize

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted({*cls._today._get_param_names(), "normalize"})

    def fit(self: Any, X: Any, y: Any, *args: Any, **options: Any) -> Any:
        """Trains the model; if it normalizes, columns are scaled to mean 0 and length 1 first."""
        if not (self.normalize and self.fit_intercept):
            return super().fit(X, y, *args, **options)  # type: ignore[misc]
        X = np.asarray(X, float)
        mean = X.mean(axis=0)
        length = np.sqrt(((X - mean) ** 2).sum(axis=0))
        length[length == 0] = 1.0
        super().fit((X - mean) / length, y, *args, **options)  # type: ignore[misc]
        self.coef_ = self.coef_ / length
        self.intercept_ = self.intercept_ - np.dot(mean, self.coef_.T)
        return self


class _OneVersusRest:
    """Adds `multi_class="ovr"`, an option of 2018, to `LogisticRegression` of today.

    This includes the solver "liblinear", which today trains two classes only.
    """

    _today: Any

    def __init__(
        self,
        penalty: Any = "l2",
        dual: bool = False,
        tol: float = 1e-4,
        C: float = 1.0,
        *,
        multi_class: str = "auto",
        **options: Any,
    ) -> None:
        if penalty == "none":
            penalty = None
        if penalty != "l2":  # In some releases the default is another word, which stands for "l2".
            options["penalty"] = penalty
        super().__init__(dual=dual, tol=tol, C=C, **options)  # type: ignore[call-arg]
        self.multi_class = multi_class

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted({*cls._today._get_param_names(), "multi_class"})

    def _is_ovr(self: Any) -> bool:
        choice = self.multi_class
        return len(self.classes_) > 2 and (
            choice == "ovr" or (choice != "multinomial" and self.solver == "liblinear")
        )

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Trains one model for each class, or one for all."""
        self.classes_ = np.unique(y)
        if not self._is_ovr():
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        classes, weights = self.classes_, self.class_weight
        weight = sample_weight
        if isinstance(weights, dict):
            each = np.array([weights.get(label, 1.0) for label in np.asarray(y)])
            weight = each if sample_weight is None else each * sample_weight
            self.class_weight = None
        fits = []
        for label in classes:
            super().fit(X, np.asarray(y) == label, weight)  # type: ignore[misc]
            fits.append((self.coef_[0], self.intercept_[0], self.n_iter_[0]))
        self.coef_, self.intercept_, self.n_iter_ = map(np.array, zip(*fits))
        self.classes_, self.class_weight = classes, weights
        return self

    def predict_proba(self: Any, X: Any) -> Any:
        """Returns the probability of each class, float64 `[examples, classes]`."""
        if not self._is_ovr():
            return super().predict_proba(X)  # type: ignore[misc]
        each = 1 / (1 + np.exp(-self.decision_function(X)))
        return each / each.sum(axis=1, keepdims=True)


@functools.lru_cache(maxsize=None)
def _linear_model(name: str) -> Any:
    adds: type = _OneVersusRest if name == "LogisticRegression" else _Normalizes
    today = getattr(_sklearn("linear_model"), name)
    more = {"__doc__": today.__doc__, "__module__": __name__, "_today": today}
    return type(name, (adds, today), more)


def __getattr__(name: str) -> Any:
    """Returns a linear model; scikit-learn, which has its base class, is loaded here."""
    if name in ("ElasticNet", "Lasso", "LinearRegression", "LogisticRegression", "Ridge"):
        return _linear_model(name)
    raise AttributeError(name)


def install() -> None:
    """Adds removed methods to matrices of SciPy and vectorizers of scikit-learn, if loaded."""
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
        """Draws the quality of a trained classifier by Matplotlib; returns the display."""
        return getattr(_sklearn("metrics"), name).from_estimator(estimator, X, y, **options)

    return plot


plot_confusion_matrix = _display("ConfusionMatrixDisplay")
plot_precision_recall_curve = _display("PrecisionRecallDisplay")
plot_roc_curve = _display("RocCurveDisplay")


def linear_assignment(X: Any) -> Any:
    """Returns the pairs of rows and columns with the smallest sum of costs, int `[pairs, 2]`."""
    return np.transpose(importlib.import_module("scipy.optimize").linear_sum_assignment(X))
