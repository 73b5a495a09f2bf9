"""Functions of packages other than NumPy that take other arguments than in 2016."""

from __future__ import annotations

from typing import Mapping

_OWN = "compat.scripts.calls."

# Functions and classes that are still there and take less than they did, and what serves them.
CHANGED: Mapping[str, str] = {
    "matplotlib.use": _OWN + "plots:use",
    "pandas.concat": _OWN + "frames:concat",
    "pandas.date_range": _OWN + "frames:date_range",
    "pandas.get_dummies": _OWN + "frames:get_dummies",
    "pandas.read_csv": _OWN + "frames:read_csv",
    "pandas.read_table": _OWN + "frames:read_table",
    "sklearn.metrics.mean_squared_error": _OWN + "learning:mean_squared_error",
    "sklearn.preprocessing.OneHotEncoder": _OWN + "learning:OneHotEncoder",
}

# Functions and classes that took arguments by position: the names of these.
POSITIONS: Mapping[str, str] = {
    "sklearn.cluster.KMeans": "n_clusters init n_init max_iter",
    "sklearn.datasets.load_iris": "return_X_y",
    "sklearn.datasets.make_blobs": "n_samples n_features centers cluster_std",
    "sklearn.datasets.make_circles": "n_samples shuffle noise",
    "sklearn.datasets.make_classification": "n_samples n_features n_informative n_redundant",
    "sklearn.datasets.make_moons": "n_samples shuffle noise",
    "sklearn.ensemble.RandomForestClassifier": "n_estimators criterion max_depth",
    "sklearn.ensemble.RandomForestRegressor": "n_estimators criterion max_depth",
    "sklearn.linear_model.LogisticRegression": "penalty dual tol C",
    "sklearn.svm.SVC": "C kernel degree gamma",
    "sklearn.svm.SVR": "kernel degree gamma coef0 tol C",
}

_HOLD = {"hold": ""}
_AXES = {"axisbg": "facecolor"}
_SCALE = {"nonposx": "nonpositive", "nonposy": "nonpositive"}
# Arguments that were renamed (or removed: "").
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
    "sklearn.cluster.KMeans": {"n_jobs": "", "precompute_distances": ""},
    "sklearn.ensemble.GradientBoostingClassifier": {"presort": ""},
    "sklearn.ensemble.GradientBoostingRegressor": {"presort": ""},
    "sklearn.ensemble.RandomForestClassifier": {"min_impurity_split": ""},
    "sklearn.metrics.log_loss": {"eps": ""},
    "sklearn.model_selection.GridSearchCV": {"iid": ""},
    "sklearn.manifold.TSNE": {"n_iter": "max_iter"},
}
