"""Functions of packages other than NumPy that take other arguments than in 2016."""

from __future__ import annotations

from typing import Mapping

_OWN = "compat.scripts.shims."

# Functions and classes that accept less than they did, and their replacements.
CHANGED: Mapping[str, str] = {
    "matplotlib.use": _OWN + "plots:use",
    "pandas.concat": _OWN + "frames:concat",
    "pandas.date_range": _OWN + "frames:date_range",
    "pandas.get_dummies": _OWN + "frames:get_dummies",
    "pandas.read_csv": _OWN + "frames:read_csv",
    "pandas.read_table": _OWN + "frames:read_table",
    "sklearn.metrics.mean_squared_error": _OWN + "learning:mean_squared_error",
    "sklearn.preprocessing.OneHotEncoder": _OWN + "learning:OneHotEncoder",
    "yaml.load": _OWN + "python:yaml_load",
    "scipy.fft": _OWN + "science:fft",
    "scipy.interpolate.interp2d": _OWN + "science:interp2d",
    **{
        f"sklearn.linear_model.{name}": f"{_OWN}learning:{name}"
        for name in ("ElasticNet", "Lasso", "LinearRegression", "LogisticRegression", "Ridge")
    },
}

_AUTO_FEATURES = {"max_features": {"auto": "sqrt"}}
_ALL_FEATURES = {"max_features": {"auto": None}}
_ERRORS = {"mse": "squared_error", "mae": "absolute_error"}
_BOOSTING = {"ls": "squared_error", "lad": "absolute_error"}
_SCORES = {
    "scoring": {
        name: f"neg_{name}" for name in ("log_loss", "mean_absolute_error", "mean_squared_error")
    }
}
# Arguments of scikit-learn whose values have been renamed.
VALUES: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "sklearn.ensemble.ExtraTreesClassifier": _AUTO_FEATURES,
    "sklearn.ensemble.ExtraTreesRegressor": {**_ALL_FEATURES, "criterion": _ERRORS},
    "sklearn.ensemble.GradientBoostingClassifier": {
        **_AUTO_FEATURES,
        "loss": {"deviance": "log_loss"},
    },
    "sklearn.ensemble.GradientBoostingRegressor": {**_ALL_FEATURES, "loss": _BOOSTING},
    "sklearn.ensemble.RandomForestClassifier": _AUTO_FEATURES,
    "sklearn.ensemble.RandomForestRegressor": {**_ALL_FEATURES, "criterion": _ERRORS},
    "sklearn.linear_model.SGDClassifier": {"loss": {"log": "log_loss"}},
    "sklearn.linear_model.SGDRegressor": {"loss": {"squared_loss": "squared_error"}},
    "sklearn.model_selection.GridSearchCV": _SCORES,
    "sklearn.model_selection.RandomizedSearchCV": _SCORES,
    "sklearn.model_selection.cross_val_score": _SCORES,
    "sklearn.tree.DecisionTreeClassifier": _AUTO_FEATURES,
    "sklearn.tree.DecisionTreeRegressor": {**_ALL_FEATURES, "criterion": _ERRORS},
}

# Functions and classes whose arguments were positional once: the names of these arguments.
POSITIONS: Mapping[str, str] = {
    "sklearn.cluster.KMeans": "n_clusters init n_init max_iter",
    "sklearn.datasets.load_iris": "return_X_y",
    "sklearn.datasets.make_blobs": "n_samples n_features centers cluster_std",
    "sklearn.datasets.make_circles": "n_samples shuffle noise",
    "sklearn.datasets.make_classification": "n_samples n_features n_informative n_redundant",
    "sklearn.datasets.make_moons": "n_samples shuffle noise",
    "sklearn.ensemble.RandomForestClassifier": "n_estimators criterion max_depth",
    "sklearn.ensemble.RandomForestRegressor": "n_estimators criterion max_depth",
    "sklearn.svm.SVC": "C kernel degree gamma",
    "sklearn.svm.SVR": "kernel degree gamma coef0 tol C",
}

_HOLD = {"hold": ""}
_AXES = {"axisbg": "facecolor"}
_SCALE = {"nonposx": "nonpositive", "nonposy": "nonpositive"}
# The new names of arguments by their old ones; "" for a removed argument.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    **{
        f"matplotlib.pyplot.{name}": _HOLD
        for name in ("contour", "contourf", "errorbar", "fill", "imshow", "plot", "scatter")
    },
    "matplotlib.pyplot.axes": _AXES,
    "matplotlib.pyplot.bar": {"left": "x", **_HOLD},
    "matplotlib.pyplot.boxplot": {"labels": "tick_labels"},
    "matplotlib.pyplot.grid": {"b": "visible"},
    "matplotlib.pyplot.hist": {"normed": "density", **_HOLD},
    "matplotlib.pyplot.savefig": {"frameon": "", "papertype": "", "quality": ""},
    "matplotlib.pyplot.stem": {"use_line_collection": ""},
    "matplotlib.pyplot.subplot": _AXES,
    "matplotlib.pyplot.xscale": _SCALE,
    "matplotlib.pyplot.yscale": _SCALE,
    "pandas.to_datetime": {"infer_datetime_format": ""},
    **{f"scipy.sparse.linalg.{name}": {"tol": "rtol"} for name in ("bicgstab", "cg", "gmres")},
    "scipy.linalg.solve": {"sym_pos": ""},
    "sklearn.cluster.AgglomerativeClustering": {"affinity": "metric"},
    "sklearn.cluster.KMeans": {"n_jobs": "", "precompute_distances": ""},
    **{
        f"sklearn.ensemble.{name}": {"base_estimator": "estimator"}
        for name in (
            "AdaBoostClassifier",
            "AdaBoostRegressor",
            "BaggingClassifier",
            "BaggingRegressor",
        )
    },
    "sklearn.ensemble.GradientBoostingClassifier": {"presort": ""},
    "sklearn.ensemble.GradientBoostingRegressor": {"presort": ""},
    "sklearn.ensemble.RandomForestClassifier": {"min_impurity_split": ""},
    "sklearn.metrics.log_loss": {"eps": ""},
    "sklearn.model_selection.GridSearchCV": {"iid": ""},
    "sklearn.manifold.TSNE": {"n_iter": "max_iter"},
}
