"""Converts the input function of an estimator to a dataset for steps of the modern runtime."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

from compat._tensorflow import tf, tf1
from compat.errors import UserError

_REMEDY = (
    "which the modern runtime does not support; return a tf.data.Dataset, or use "
    "compat.select_runtime('legacy')"
)


class Inputs:
    """An input function that returns a dataset, the tensors of an iterator, or constants.

    Attributes:
      dataset: The argument `dataset` of `compat.step`; None if the function has no dataset.
      graph: The graph in which the function was called.

    Raises:
      UserError: The function needs a session of TensorFlow.
    """

    def __init__(self, input_fn: Callable[[], Any]) -> None:
        self._input_fn = input_fn
        iterated: list[Any] = []

        def element(dataset: Any) -> _Element:
            iterated.append(dataset)
            return _Element(dataset)

        with tf1.Graph().as_default() as graph, _iterators(element):
            returned = input_fn()
            _check(graph, len(iterated))
        self.graph = graph
        self.dataset: Callable[[int, int], Any] | None = None
        self._returns_dataset = isinstance(returned, (tf.data.Dataset, tf1.data.Dataset))
        if self._returns_dataset:
            self.dataset = lambda index, workers: input_fn()
        elif iterated:
            self.dataset = lambda index, workers: self._iterated()

    def _iterated(self) -> Any:
        """Returns the dataset for which the function creates an iterator."""

        def stop(dataset: Any) -> Any:
            raise _Found(dataset)

        try:
            with _iterators(stop):
                self._input_fn()
        except _Found as stopped:
            return stopped.args[0]
        raise UserError("the input function did not make the iterator that it made before")

    def tensors(self, *elements: Any) -> tuple[Any, Any]:
        """Returns features and labels of an element of the dataset; called inside the step."""
        returned = elements[0] if elements else None
        if not self._returns_dataset:
            with _iterators(lambda dataset: _Element(dataset, *elements)):
                returned = self._input_fn()
        if not isinstance(returned, (list, tuple)):
            return returned, None
        if len(returned) != 2:
            raise UserError(
                f"the input function returned {len(returned)} values; return features, or a tuple "
                "of features and labels"
            )
        return returned[0], returned[1]


class _Found(BaseException):
    """Raised to end the call of an input function once its dataset is known."""


class _Element:
    """Replaces an iterator inside an input function, and returns a given element."""

    def __init__(self, dataset: Any, *element: Any) -> None:
        self._dataset, self._given = dataset, element

    @property
    def initializer(self) -> Any:
        """Returns an operation that does nothing, since the step starts the dataset."""
        return tf.no_op()

    def get_next(self, name: str | None = None) -> Any:
        """Returns the element."""
        if self._given:
            return self._given[0]
        specs = tf1.data.get_output_types(self._dataset), tf1.data.get_output_shapes(self._dataset)
        return tf.nest.map_structure(tf1.placeholder, *specs)


@contextlib.contextmanager
def _iterators(make: Callable[[Any], Any]) -> Iterator[None]:
    """Makes the functions that create iterators of TensorFlow 1.x call `make` instead."""
    kind, names = tf1.data.Dataset, ("_make_one_shot_iterator", "_make_initializable_iterator")
    kept = {name: getattr(kind, name) for name in names}
    for name in names:
        setattr(kind, name, lambda dataset, shared_name=None: make(dataset))
    try:
        yield
    finally:
        for name, method in kept.items():
            setattr(kind, name, method)


def _check(graph: Any, iterators: int) -> None:
    """Raises a `UserError` if the input uses queue runners, or makes more than one iterator.

    The modern runtime does not support queue runners here, and a step reads only one dataset.
    """
    if graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
        raise UserError(f"the input function reads from queues by queue runners, {_REMEDY}")
    if iterators > 1:
        raise UserError(
            f"the input function makes {iterators} iterators, and a step reads one dataset; join "
            "the datasets by tf.data.Dataset.zip"
        )
