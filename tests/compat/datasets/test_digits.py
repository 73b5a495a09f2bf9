"""The digits: the same everywhere, and still scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from compat import datasets
from compat.datasets import digits


@pytest.mark.parametrize("file", [digits._FILE, "elsewhere"])
def test_the_digits_are_the_same_everywhere(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where scikit-learn keeps them elsewhere."""
    monkeypatch.setattr(digits, "_FILE", file)
    dataset = datasets.load("digits")
    assert dataset.name == "digits"
    assert dataset.source == "embedded in scikit-learn"
    assert dataset.checksum == "3c6f306421090034f4bcbd519453b677fb21f855b1ca154c1303228b1730f240"


def test_each_split_has_its_share_of_every_class() -> None:
    dataset = datasets.load("digits")
    splits = (dataset.train, dataset.validation, dataset.test)
    assert [len(split.images) for split in splits] == [1297, 200, 300]
    named = dataset.splits()
    assert list(named) == ["train", "validation", "test"]
    for arrays, split in zip(named.values(), splits):
        assert arrays.keys() == {"images", "labels"}
        assert arrays["images"] is split.images and arrays["labels"] is split.labels
    for split in splits:
        assert split.images.shape == (len(split.labels), 28, 28)
        assert split.images.dtype == np.uint8
        assert split.labels.dtype == np.int32
        assert np.bincount(split.labels).min() > 0.05 * len(split.labels)
        assert len(np.bincount(split.labels)) == 10


def test_the_pixels_are_the_original_ones_enlarged() -> None:
    dataset = datasets.load("digits")
    splits = (dataset.train, dataset.validation, dataset.test)
    images = np.concatenate([split.images for split in splits])
    labels = np.concatenate([split.labels for split in splits])
    inside = images[:, 2:-2, 2:-2]
    assert images.sum(dtype=np.int64) == inside.sum(dtype=np.int64)
    small = inside[:, ::3, ::3]
    assert np.array_equal(inside, small.repeat(3, axis=1).repeat(3, axis=2))
    assert (small.min(), small.max()) == (0, 255)

    levels = np.rint(small / 255 * 16)
    original = load_digits()
    found = {(image.tobytes(), int(label)) for image, label in zip(levels, labels)}
    expected = zip(original.images, original.target)
    assert found == {(image.tobytes(), int(label)) for image, label in expected}


def test_the_arrays_cannot_be_changed_by_accident() -> None:
    train = datasets.load("digits").train
    with pytest.raises(ValueError, match="read-only"):
        train.images[0, 0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        train.labels[0] = 1
