"""Elastic averaging SGD: the copy of each worker is drawn to a center on the parameter servers.

Source: Zhang, Choromanska and LeCun, Deep learning with elastic averaging SGD, 2015, Algorithm 1.
"""

from __future__ import annotations

from typing import Any, Callable

import compat
from compat import tf
from experiments.training.updates.local_updates.downpour import Copies
from experiments.training.updates.step import in_one_message


class ElasticCopies(Copies):
    """Copies that keep their values from one group of updates to the next.

    The variables on the parameter servers are the center, which is saved, evaluated and exported.
    Before each group of updates, a copy and its center are moved towards each other, each by
    `share` of their difference.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share
        # The values of the copies after the last update. Evaluations set the copies to the center.
        self._kept: list[Any] = []

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        known = len(self.pairs)
        created = super()._create(next_creator, **kwargs)
        for variable, _ in self.pairs[known:]:
            self._kept.append(self.make_local(variable, "kept"))
        return created

    def begin(self) -> tuple[Any, list[Any]]:
        """Moves copies and center towards each other; returns None and the operations."""
        variables = [variable for variable, _ in self.pairs]
        centers = [variable.read_value() for variable in variables]
        has_begun = compat.worker_variable(False, "has_begun")
        begun = has_begun.read_value()  # If not, the worker has just started: it is at the center.
        values = [tf.where(begun, own.read_value(), c) for own, c in zip(self._kept, centers)]
        changes = [self._share * (value - c) for value, c in zip(values, centers)]
        assigned = [
            copy.assign(value - change)
            for (_, copy), value, change in zip(self.pairs, values, changes)
        ]
        with tf.control_dependencies([begun]):
            assigned.append(has_begun.assign(True))
        sent = in_one_message(changes, variables)
        assigned += [variable.assign_add(change) for variable, change in zip(variables, sent)]
        return None, [getattr(found, "op", found) for found in assigned]

    def end(self, begun: Any) -> list[Any]:
        """Stores the copies' values for the next group of updates; returns the operations."""
        kept = [own.assign(copy.read_value()) for own, (_, copy) in zip(self._kept, self.pairs)]
        return [getattr(found, "op", found) for found in kept]
