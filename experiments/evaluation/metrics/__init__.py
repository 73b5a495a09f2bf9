"""Streaming metrics, which are exact over a whole split and not averages over its chunks.

    metric = Recall(threshold=0.0)  # Of logits.
    for outputs in chunks:
        metric.update(outputs)  # {"labels": int64 [n], "predictions": float32 [n]}
    metric.result()

A metric reads outputs of a step by name: NumPy arrays with one value per example, or several for
sequences and images. If the name of weights is given, these have the shape of the labels, or its
first dimensions. Values with the weight 0, such as padding, are left out, even if they are NaN. The
result is NaN if another value is NaN, or if it is undefined, such as a recall without positive
labels.

A metric of your own is any object with the methods `reset`, `update` and `result`; it need not be
derived from `Metric`. If it has a method `write(writer, step, name)` as well, that is called at
each evaluation, to record a picture; `result` may return None if there is no number.
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
