"""Streaming metrics, exact over the whole set, not averages over chunks.

    metric = Recall(threshold=0.0)  # Of logits.
    for outputs in chunks:
        metric.update(outputs)  # {"labels": int64 [n], "predictions": float32 [n]}
    metric.result()

Each reads outputs of a step by name: NumPy arrays with a value per example or, of sequences and
images, several. Weights, if their name is given, have the shape of the labels or its first
dimensions. What has the weight 0, such as padding, is left out, whatever its value. The result is
NaN where a value is NaN, and where it is undefined, such as a recall without positive labels.

A metric of one's own is any object with the same three methods, `reset`, `update` and `result`; it
need not be derived from `Metric`. One that has a picture has a method `write(writer, step, name)`,
called at each evaluation, and returns None from `result` where there is no number.
"""

from experiments.evaluation.metrics.classification import (
    AUC,
    F1,
    Accuracy,
    Calibration,
    LogLoss,
    Precision,
    Recall,
)
from experiments.evaluation.metrics.collisions import Collisions
from experiments.evaluation.metrics.metric import Metric
from experiments.evaluation.metrics.pictures import (
    ConfusionMatrix,
    Embedding,
    Misclassified,
    Picture,
    PrecisionRecallCurve,
    classifier_pictures,
)
from experiments.evaluation.metrics.regression import MAE, R2, RMSE, Mean, Perplexity

__all__ = [
    "AUC",
    "Accuracy",
    "Calibration",
    "Collisions",
    "ConfusionMatrix",
    "Embedding",
    "F1",
    "LogLoss",
    "MAE",
    "Mean",
    "Metric",
    "Misclassified",
    "Perplexity",
    "Picture",
    "Precision",
    "PrecisionRecallCurve",
    "R2",
    "RMSE",
    "Recall",
    "classifier_pictures",
]
