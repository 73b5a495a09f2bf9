"""Pictures of an evaluation, against numbers of scikit-learn, and what TensorBoard is given."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image
from sklearn import metrics as reference
from tensorboard.plugins.pr_curve.metadata import parse_plugin_metadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.util.tensor_util import make_ndarray

from compat.errors import UserError
from compat.tracking import TensorBoard
from compat.tracking.tensorboard.eventfile import event_files, read_events
from experiments.evaluation.evaluate import write_at_end, write_pictures
from experiments.evaluation.metrics import (
    ConfusionMatrix,
    Embedding,
    Misclassified,
    PrecisionRecallCurve,
)

pytestmark = pytest.mark.once
NUMBER, CLASSES = 300, 4
NAMES = ["a cat", "a dog", "a|b", "a rather long name for an animal, is it not"]


@pytest.fixture(scope="module")
def outputs() -> dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    labels = random.randint(CLASSES, size=NUMBER)
    logits = random.standard_normal([NUMBER, CLASSES]).astype(np.float32)
    logits[np.arange(NUMBER), labels] += 2
    images = random.randint(256, size=[NUMBER, 9, 7]).astype(np.uint8)
    weights = random.choice([0.0, 0.5, 2.0], NUMBER)
    return {"labels": labels, "predictions": logits, "images": images, "weights": weights}


def fed(metric: Any, outputs: dict[str, np.ndarray], size: int = 70) -> Any:
    for start in range(0, NUMBER, size):
        metric.update({name: array[start : start + size] for name, array in outputs.items()})
    return metric


def points(logdir: Path) -> dict[str, list[tuple[int, Any]]]:
    """Returns what TensorBoard is given, by tag."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for path in event_files(str(logdir)):
        for _, event in read_events(path):
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value))
    return found


def softmax(logits: np.ndarray) -> Any:
    powers = np.exp(logits.astype(np.float64))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [70, NUMBER])
def test_confusion_matrix_is_exact(outputs: Any, size: int) -> None:
    found = fed(ConfusionMatrix(weights="weights"), outputs, size).counts
    guess = outputs["predictions"].argmax(1)
    weights = outputs["weights"]
    expected = reference.confusion_matrix(outputs["labels"], guess, sample_weight=weights)
    np.testing.assert_allclose(found, expected)


def test_precision_and_recall_are_exact_at_each_threshold(outputs: Any) -> None:
    given = {**outputs, "predictions": softmax(outputs["predictions"])}
    curves = fed(PrecisionRecallCurve(weights="weights"), given).curves()
    of_logits = fed(PrecisionRecallCurve(weights="weights", from_logits=True), outputs).curves()
    np.testing.assert_allclose(curves, of_logits)
    assert curves.shape == (CLASSES, 6, 201)
    for label, curve in enumerate(curves):
        true = outputs["labels"] == label
        for i in (1, 60, 100, 150):
            guess = given["predictions"][:, label] >= i / 200
            counts = reference.confusion_matrix(true, guess, sample_weight=outputs["weights"])
            np.testing.assert_allclose(curve[:4, i], counts.ravel()[[3, 1, 0, 2]])
            share = reference.precision_score(true, guess, sample_weight=outputs["weights"])
            np.testing.assert_allclose(curve[4, i], share)


def test_two_classes_have_one_curve_however_they_are_predicted(outputs: Any) -> None:
    logits, labels = outputs["predictions"][:, :2], outputs["labels"] % 2
    curves = [
        fed(PrecisionRecallCurve(from_logits=yes), {"labels": labels, "predictions": given})
        for yes, given in (
            (True, logits),
            (True, logits[:, 1] - logits[:, 0]),
            (False, softmax(logits)[:, 1]),
        )
    ]
    for curve in curves:
        np.testing.assert_allclose(curve.curves(), curves[0].curves())
    assert len(curves[0].curves()) == 1


def test_the_most_certain_mistakes_are_kept(outputs: Any) -> None:
    metric = fed(Misclassified(most=7), outputs)
    labels, logits = outputs["labels"], outputs["predictions"]
    lead = logits.max(1) - logits[np.arange(NUMBER), labels]
    expected = np.argsort(-lead)[:7]
    assert [kept[2:] for kept in metric._kept] == [
        (labels[i], logits[i].argmax()) for i in expected
    ]
    for kept, i in zip(metric._kept, expected):
        assert (kept[1][..., 0] == outputs["images"][i]).all()


def test_what_tensorboard_is_given(outputs: Any, tmp_path: Path) -> None:
    metrics = {
        "confusion": ConfusionMatrix(classes=NAMES),
        "pr_curve": PrecisionRecallCurve(classes=NAMES, from_logits=True),
        "misclassified": Misclassified(classes=NAMES),
        "points": Embedding(images="images", classes=NAMES, most=250),
        "ids": Embedding(),
    }
    board = TensorBoard(str(tmp_path))
    for step in (10, 20):
        for metric in metrics.values():
            metric.reset()
            fed(metric, outputs)
            assert metric.result() is None
        write_pictures(metrics, board, step, "validation")
    write_at_end(metrics, board)
    board.close()
    written = points(tmp_path)
    tags = ["confusion", "confusion/table", *(f"pr_curve/{n}" for n in NAMES), "misclassified"]
    assert sorted(written) == sorted(f"validation/{tag}" for tag in tags)
    for tag in tags:
        assert [step for step, _ in written[f"validation/{tag}"]] == [10, 20]
    for tag in ("confusion", "misclassified"):
        width, height, png = written[f"validation/{tag}"][-1][1].tensor.string_val
        image = Image.open(io.BytesIO(png))
        assert (image.width, image.height) == (int(width), int(height))
        assert len(image.convert("RGB").getcolors(1 << 16)) > 20
    assert r"a\|b" in written["validation/confusion/table"][0][1].tensor.string_val[0].decode()
    curve = written["validation/pr_curve/a cat"][0][1]
    assert make_ndarray(curve.tensor).shape == (6, 201)
    assert parse_plugin_metadata(curve.metadata.plugin_data.content).num_thresholds == 201
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    named, ids = config.embeddings
    vectors = np.loadtxt(str(tmp_path / named.tensor_path), delimiter="\t")
    np.testing.assert_allclose(vectors, outputs["predictions"][:250], rtol=1e-5)
    names = (tmp_path / named.metadata_path).read_text().splitlines()
    assert names == [NAMES[label] for label in outputs["labels"][:250]]
    with Image.open(tmp_path / named.sprite.image_path) as sprite:
        assert sprite.size == (16 * 7, 16 * 9)
        last = sprite.crop((9 * 7, 15 * 9, 10 * 7, 16 * 9))  # Of index 249, in rows of 16.
        assert (np.asarray(last) == outputs["images"][249]).all()
    assert (ids.tensor_name, ids.sprite.image_path) == ("ids", "")


def test_nothing_is_drawn_of_nan_or_of_no_mistake(outputs: Any, tmp_path: Path) -> None:
    broken = {**outputs, "predictions": np.full([NUMBER, CLASSES], np.nan)}
    perfect = {**outputs, "predictions": outputs["labels"]}
    metrics = {"a": fed(ConfusionMatrix(), broken), "b": fed(Misclassified(), perfect)}
    metrics["c"] = fed(Misclassified(), {**broken, "labels": np.full(NUMBER, np.nan)})
    board = TensorBoard(str(tmp_path))
    write_pictures(metrics, board, 1, "test")
    write_at_end({"c": Embedding()}, board)
    board.close()
    assert points(tmp_path) == {}
    assert not (tmp_path / "projector_config.pbtxt").exists()


@pytest.mark.parametrize(
    ("metric", "changed", "message"),
    [
        (ConfusionMatrix(classes=NAMES[:3]), {}, "names of 3 classes, but reads scores of 4"),
        (PrecisionRecallCurve(), {}, "expected probabilities, or give from_logits=True"),
        (Misclassified(images="picture"), {}, "reads output 'picture', but the step returns"),
        (Misclassified(), {"images": np.zeros([NUMBER, 5])}, r"have the shape \[300, 5\]"),
        (Embedding(vectors="weights"), {}, "reads vectors 'weights' of one number"),
        (Embedding(), {"labels": np.zeros([NUMBER, 2])}, "return one for each of the vectors"),
        (ConfusionMatrix(), {"labels": np.full(NUMBER, 4)}, "the value 4; expected whole"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    outputs: Any, metric: Any, changed: Any, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        metric.update({**outputs, **changed})
