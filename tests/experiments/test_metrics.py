"""Metrics against scikit-learn's, on the same data in chunks of any sizes."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from compat.errors import UserError
from experiments.evaluation.metrics import (
    AUC,
    F1,
    MAE,
    R2,
    RMSE,
    Accuracy,
    LogLoss,
    Mean,
    Misclassified,
    Perplexity,
    Precision,
    Recall,
)
from tests.fuzz.conftest import times

pytestmark = pytest.mark.once
CLASSES = 4
NAMES = ("labels", "predictions")


@st.composite
def splits(draw: Any) -> tuple[dict[str, np.ndarray], list[int]]:
    """Draws outputs with ties and weights, some of them 0, and where to cut them into chunks."""
    n = draw(st.integers(2, 60))
    random = np.random.RandomState(draw(st.integers(0, 2**31)))
    weights = random.choice([0.0, 0.5, 1.0, 3.0], n)
    weights[:2] = 1.0
    binary = random.randint(0, 2, n)
    binary[:2] = 0, 1  # So that all is defined.
    scores = random.randint(0, draw(st.integers(2, 1000)), n) / 1000.0
    scores[1] = 0.75
    outputs = {
        "weights": weights,
        "binary": binary.astype(draw(st.sampled_from(["int32", "bool", "float32"]))),
        "scores": scores,
        "classes": np.append([0, 1, 2, 3], random.randint(0, CLASSES, n))[:n],
        "logits": random.standard_normal((n, CLASSES)) * draw(st.sampled_from([1, 30])),
        "numbers": random.standard_normal(n) + draw(st.sampled_from([0.0, 1e6])),
        "guesses": random.standard_normal(n) * 10,
    }
    cuts = draw(st.lists(st.integers(0, n), max_size=4))
    return outputs, [0, *sorted(cuts), n]


def streamed(metric: Any, outputs: dict[str, np.ndarray], cuts: list[int]) -> float:
    metric.reset()
    for first, end in zip(cuts, cuts[1:]):
        metric.update({name: array[first:end] for name, array in outputs.items()})
    return float(metric.result())


def probabilities(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


BINARY = ("binary", "scores")
CLASSIFIED = ("classes", "logits")
NUMBERS = ("numbers", "guesses")


def above(scores: np.ndarray) -> np.ndarray:
    return scores > 0.5


def likeliest(logits: np.ndarray) -> np.ndarray:
    return logits.argmax(axis=1)


def root_mean_squared_error(*args: Any, **options: Any) -> float:
    """That of scikit-learn is new in 1.4."""
    return math.sqrt(reference.mean_squared_error(*args, **options))


REFERENCES: list[tuple[type, tuple[str, str], Callable[..., Any], Callable[..., Any]]] = [
    (Accuracy, BINARY, above, reference.accuracy_score),
    (Accuracy, CLASSIFIED, likeliest, reference.accuracy_score),
    (Precision, BINARY, above, reference.precision_score),
    (Recall, BINARY, above, reference.recall_score),
    (F1, BINARY, above, reference.f1_score),
    (AUC, BINARY, np.asarray, reference.roc_auc_score),
    (MAE, NUMBERS, np.asarray, reference.mean_absolute_error),
    (RMSE, NUMBERS, np.asarray, root_mean_squared_error),
    (R2, NUMBERS, np.asarray, reference.r2_score),
]


@pytest.mark.parametrize(("metric", "names", "to_guess", "expected"), REFERENCES)
@pytest.mark.parametrize("weighted", [True, False])
@times(0.5)
@given(split=splits())
def test_streamed_is_the_same_as_of_the_whole(
    metric: Any,
    names: tuple[str, str],
    to_guess: Any,
    expected: Any,
    weighted: bool,
    split: tuple[dict[str, np.ndarray], list[int]],
) -> None:
    outputs, cuts = split
    labels, predictions = (outputs[name] for name in names)
    weights = outputs["weights"] if weighted else None
    if names == BINARY:
        labels = labels.astype(int)
    whole = expected(labels, to_guess(predictions), sample_weight=weights)
    found = streamed(metric(*names, weights="weights" if weighted else None), outputs, cuts)
    assert found == pytest.approx(whole, rel=1e-9, abs=1e-12, nan_ok=True)


@times(1)
@given(split=splits())
def test_log_loss_and_perplexity(split: tuple[dict[str, np.ndarray], list[int]]) -> None:
    outputs, cuts = split
    classes, weights = outputs["classes"], outputs["weights"]
    chances = probabilities(outputs["logits"])
    found = streamed(LogLoss("classes", "chances", "weights"), dict(outputs, chances=chances), cuts)
    exact = streamed(LogLoss("classes", "logits", "weights", from_logits=True), outputs, cuts)
    if chances.min() > 1e-6:  # Else scikit-learn and we clip elsewhere.
        whole = reference.log_loss(classes, chances, sample_weight=weights, labels=range(CLASSES))
        assert found == pytest.approx(whole, rel=1e-9)
    losses = -np.log(chances[np.arange(len(chances)), classes])
    assert exact == pytest.approx(np.average(losses, weights=weights), rel=1e-9)
    assert exact >= found - 1e-6
    numbers = outputs["numbers"] % 7
    found = streamed(Perplexity("losses", "weights"), dict(outputs, losses=numbers), cuts)
    assert found == pytest.approx(np.exp(np.average(numbers, weights=weights)))


def test_log_loss_of_two_classes() -> None:
    logits = np.array([-1000.0, -2.0, 0.0, 3.0, 1000.0])
    outputs = {"labels": np.array([0, 1, 1, 0, 1]), "predictions": logits}
    metric = LogLoss(from_logits=True)
    metric.update(outputs)
    assert metric.result() == pytest.approx((0 + 2.126928 + math.log(2) + 3.048587 + 0) / 5)
    metric = LogLoss()
    metric.update(dict(outputs, predictions=1 / (1 + np.exp(-logits.clip(-5, 5)))))
    whole = reference.log_loss(outputs["labels"], 1 / (1 + np.exp(-logits.clip(-5, 5))))
    assert metric.result() == pytest.approx(whole)


def test_large_values_lose_nothing() -> None:
    mean = Mean()
    for _ in range(1000):
        mean.update({"values": np.full(1000, 16777217.0 / 3, np.float32)})
    assert mean.result() == pytest.approx(float(np.float32(16777217.0 / 3)), rel=1e-12)
    perplexity = Perplexity()
    perplexity.update({"losses": np.array([700.0, 709.0], np.float32)})
    assert perplexity.result() == pytest.approx(math.exp(704.5))
    perplexity.update({"losses": np.array([5000.0])})
    assert perplexity.result() == math.inf
    differences = RMSE()
    differences.update({"labels": np.array([250], "uint8"), "predictions": np.array([2], "uint8")})
    assert differences.result() == 248


@pytest.mark.parametrize(
    ("metric", "labels", "predictions", "expected"),
    [
        (AUC(), [1, 1], [0.2, 0.3], math.nan),
        (AUC(), [0, 1, 1], [[0.9, 0.1], [0.5, 0.5], [0.95, 0.05]], 0.5),
        (AUC(), [0, 1], [-math.inf, math.inf], 1.0),
        (AUC(), [0, 1, 1], [0.1, math.nan, 0.3], math.nan),
        (Recall(), [0, 0], [0.9, 0.1], math.nan),
        (Precision(), [1, 0], [0.2, 0.1], math.nan),
        (F1(), [0, 0], [0.2, 0.1], math.nan),
        (F1(), [1, 0], [0.2, 0.1], 0.0),
        (R2(), [3.0, 3.0], [3.0, 2.0], math.nan),
        (Accuracy(), [0, 1], [math.nan, 1.0], math.nan),
        (Accuracy(threshold=0.0), [0, 1], [-0.2, 0.3], 1.0),
        (Accuracy(), [2, 1], [2, 0], 0.5),
        (Accuracy(), [[2], [1]], [[0.1, 0.2, 0.9], [0.1, 0.5, 0.2]], 1.0),
        (Accuracy(), [1, 0, 1], [[0.9], [0.2], [0.1]], 2 / 3),
        (Accuracy(), [[1, 0]], [[[0.1, 0.9], [0.1, 0.9]]], 0.5),
        (RMSE(), [[1.0], [2.0]], [2.0, 3.0], 1.0),
        (RMSE(), [1.0, math.nan], [2.0, 3.0], math.nan),
        (MAE(), [True, False], [0.5, 0.25], 0.375),
    ],
)
def test_what_is_undefined_and_what_shapes_mean(
    metric: Any, labels: Any, predictions: Any, expected: float
) -> None:
    metric.reset()
    metric.update({"labels": np.array(labels), "predictions": np.array(predictions)})
    assert metric.result() == pytest.approx(expected, nan_ok=True)


def test_padding_is_left_out_whatever_it_is() -> None:
    outputs = {
        "labels": np.array([[1, 0, 99], [1, -1, 0]]),
        "predictions": np.array([[0.9, 0.8, math.nan], [0.7, 0.1, math.inf]]),
        "losses": np.array([[0.5, 1.5, math.nan], [1.0, math.inf, math.nan]]),
        "mask": np.array([[True, True, False], [True, False, False]]),
    }
    found = {}
    for metric in (Accuracy(weights="mask"), Perplexity(weights="mask"), AUC(weights="mask")):
        metric.update(outputs)
        found[type(metric)] = metric.result()
    assert found == {Accuracy: 2 / 3, Perplexity: math.e, AUC: 0.5}
    by_example = Mean("values", "weights")
    by_example.update({"values": np.array([[1.0, 3.0], [5.0, 7.0]]), "weights": np.array([1, 3])})
    assert by_example.result() == 5


@pytest.mark.parametrize(
    ("metric", "outputs", "message"),
    [
        (AUC(), {"loss": 1.0}, "AUC reads output 'labels', but the step returns loss; return it"),
        (Mean("loss"), {"loss": 1.0}, "Mean reads output 'loss', a scalar; return a value per"),
        (Mean(), {"values": ["x"]}, "Mean reads output 'values' of <U1; return numbers"),
        (
            RMSE(),
            {"labels": [1.0, 2.0], "predictions": [[1.0, 2.0], [3.0, 4.0]]},
            r"RMSE reads labels 'labels' of shape \[2\] and predictions 'predictions' of shape "
            r"\[2, 2\]; return the same shape$",
        ),
        (
            Accuracy(),
            {"labels": [1, 2, 0], "predictions": [1, 2]},
            r"of shape \[2\]; return the same shape, or predictions with one more dimension",
        ),
        (
            Accuracy(),
            {"labels": [0.5], "predictions": [1]},
            r"with the value 0\.5; expected whole numbers from 0$",
        ),
        (
            AUC(),
            {"labels": [0, 2], "predictions": [0.1, 0.2]},
            "with the value 2; expected whole numbers from 0 below 2$",
        ),
        (
            AUC(),
            {"labels": [0, 1], "predictions": [[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]]},
            "AUC reads scores of 3 classes; return those of two",
        ),
        (
            LogLoss(),
            {"labels": [0, 1], "predictions": [0.1, 1.5]},
            "'predictions' from -0.5 to 1.5; expected probabilities, or give from_logits=True",
        ),
        (
            Mean(weights="weights"),
            {"values": [1.0, 2.0], "weights": [1.0, -1.0]},
            "Mean reads weights 'weights'; expected finite ones of at least 0",
        ),
        (
            Mean(weights="weights"),
            {"values": [1.0, 2.0], "weights": [1.0]},
            r"Mean reads weights 'weights' of shape \[1\] for values of shape \[2\]; return one",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(
    metric: Any, outputs: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        metric.update({name: np.array(value) for name, value in outputs.items()})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("metric", [Mean(), Perplexity("values"), Mean(weights="weights")])
def test_a_set_without_examples_is_refused(metric: Any) -> None:
    metric.update({"values": np.zeros(0), "weights": np.zeros(0)})
    metric.update({"values": np.zeros((0, 3)), "weights": np.zeros(0)})
    with pytest.raises(UserError, match="was given no example whose weight is above 0; evaluate"):
        metric.result()


def test_outputs_are_checked_by_name_before_there_are_values() -> None:
    AUC(weights="mask").check(["labels", "mask", "predictions"])
    with pytest.raises(UserError, match="Mean reads output 'mask', but the step returns values; "):
        Mean(weights="mask").check(["values"])
    with pytest.raises(UserError, match="reads output 'images', but the step returns labels, pre"):
        Misclassified().check(["labels", "predictions"])
