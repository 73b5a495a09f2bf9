"""`tf.contrib.learn`, built on `tf.estimator`."""

# ruff: noqa: F401 - Scripts use them.

from __future__ import annotations

from compat.scripts.contrib import learn_monitors as monitors
from compat.scripts.contrib import learn_preprocessing as preprocessing
from compat.scripts.contrib.learn_canned import (
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearRegressor,
)
from compat.scripts.contrib.learn_estimators import (
    BaseEstimator,
    Estimator,
    ModeKeys,
    ModelFnOps,
    SKCompat,
)
from compat.scripts.contrib.learn_inputs import (
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from compat.scripts.contrib.learn_metrics import MetricSpec, PredictionKey
from compat.scripts.contrib.learn_run import Environment, Experiment, RunConfig, TaskType, run, tune
