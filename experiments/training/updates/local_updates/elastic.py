"""Elastic averaging SGD: workers explore around a center that is on the parameter servers.

Source: Zhang, Choromanska and LeCun, Deep learning with elastic averaging SGD, 2015, Algorithm 1.
"""

from __future__ import annotations

from typing import Any, Callable

import compat
from compat import tf
from experiments.training.updates.local_updates.downpour import Copies
from experiments.training.updates.step import in_one_message


class ElasticCopies(Copies):
    """Copies that keep values of their own, a spring between each of them and the center.

    The variables are the center: what is saved, evaluated and exported. Before each group of
    updates, a copy and its center come closer, each by `share` of what is between them.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share
        # What a copy was after its last update: an evaluation gives the copies the center's values.
        self._kept: list[Any] = []

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        known = len(self.pairs)
        created = super()._create(next_creator, **kwargs)
        for variable, _ in self.pairs[known:]:
            self._kept.append(self.make_local(variable, "kept"))
        return created

    def begin(self) -> tuple[Any, list[Any]]:
        """Brings copies and center closer; returns what has to run for it."""
        variables = [variable for variable, _ in self.pairs]
        centers = [variable.read_value() for variable in variables]
        has_begun = compat.worker_variable(False, "has_begun")
        begun = has_begun.read_value()  # A worker that has just started is at the center.
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
        """Keeps the copies' values for the next group of updates."""
        kept = [own.assign(copy.read_value()) for own, (_, copy) in zip(self._kept, self.pairs)]
        return [getattr(found, "op", found) for found in kept]
