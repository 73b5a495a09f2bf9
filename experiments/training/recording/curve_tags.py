"""Converts the names of curves to their names in TensorBoard, which orders its charts by name.

TensorBoard sorts charts by name, and groups those with the same text before the first slash. So
each loss or metric is a group, with a chart for training and one for validation:

    accuracy/train  accuracy/validation  cost/train  cost/validation  test/cost  train/steps_per_sec
"""

from __future__ import annotations

from typing import Collection, Mapping

from compat.tracking import TensorBoard

_CURVES = ("train", "validation")
_BEST = "best_test"
_OF_THE_RUN = ("learning_rate", "steps_per_sec")


def tag_of(name: str) -> str:
    """Returns the name that a curve has in TensorBoard.

    >>> tag_of("train/cost"), tag_of("best_test/cost"), tag_of("learning_rate")
    ('cost/train', 'test/best/cost', 'train/learning_rate')
    """
    split, _, measure = name.partition("/")
    if measure and split in _CURVES:
        return f"{measure}/{split}"
    if measure and split == _BEST:
        return f"test/best/{measure}"
    return f"train/{name}" if name in _OF_THE_RUN else name


def name_of(tag: str) -> str:
    """Returns the name of the curve that has the name `tag` in TensorBoard.

    A `tag` that is the name of a curve already stays as it is.

    >>> name_of("cost/train"), name_of("train/cost")
    ('train/cost', 'train/cost')
    """
    measure, _, split = tag.rpartition("/")
    if measure == "train" and split in _OF_THE_RUN:
        return split
    if tag.startswith("test/best/"):
        return f"{_BEST}/{tag[len('test/best/') :]}"
    return f"{split}/{measure}" if measure and split in _CURVES else tag


class Board(TensorBoard):
    """Writes curves under their names in TensorBoard."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """See `Writer.scalars`."""
        super().scalars(step, {tag_of(name): value for name, value in values.items()})

    def charts(self, curves: Mapping[str, Collection[str]]) -> None:
        """See `Writer.charts`."""
        super().charts({chart: [*map(tag_of, names)] for chart, names in curves.items()})
