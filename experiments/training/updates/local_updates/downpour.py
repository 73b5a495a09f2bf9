"""Downpour SGD: each worker makes several updates of its own between two messages to the servers.

Source: Dean et al., Large scale distributed deep networks, 2012. A worker fetches the parameters,
makes n updates of its copy, and adds the change of its copy to the parameters.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping

import numpy as np

import compat
from compat import tf, tf1
from experiments.training.updates.step import (
    counted,
    in_one_message,
    loss_and_gradients,
    losses_of,
    rate_and_updates,
    step_now,
)
from experiments.training.updates.update import Updates


class Copies:
    """Makes a copy of each trainable variable on the worker; the model uses the copies.

    The variables themselves stay on their parameter servers, and in checkpoints.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []  # A variable and its copy in each.
        self._is_local = False

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Opens a scope in which the creation of a trainable variable returns its local copy."""
        with tf.variable_creator_scope(self._create):
            yield

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = next_creator(**kwargs)
        if self._is_local or not variable.trainable:
            return variable
        # Its first value does not matter: the copy is set to the variable before it is read.
        copy = self.make_local(variable, "copy")
        self.pairs.append((variable, copy))
        return copy

    def make_local(self, variable: Any, name: str) -> Any:
        """Makes a variable of zeros on the worker, with the shape and type of another variable."""
        zeros = np.zeros(variable.shape.as_list(), variable.dtype.base_dtype.as_numpy_dtype)
        self._is_local = True
        try:
            return compat.worker_variable(zeros, f"{variable.name.partition(':')[0]}/{name}")
        finally:
            self._is_local = False

    @contextlib.contextmanager
    def local(self) -> Iterator[None]:
        """Opens a scope whose variables, such as an optimizer's moments, are on the worker."""

        def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            kwargs.update(collections=[tf1.GraphKeys.LOCAL_VARIABLES], trainable=False)
            return next_creator(**kwargs)

        with tf.variable_creator_scope(create):
            yield

    def known(self) -> list[Any]:
        """Returns the copies that were made so far."""
        return [copy for _, copy in self.pairs]

    def fetch(self) -> tuple[list[Any], list[Any]]:
        """Sets each copy to its variable; returns the variables' values, and the operations."""
        values = [variable.read_value() for variable, _ in self.pairs]
        assigned = [copy.assign(value) for value, (_, copy) in zip(values, self.pairs)]
        return values, [getattr(found, "op", found) for found in assigned]

    def begin(self) -> tuple[Any, list[Any]]:
        """Sets the copies before the updates.

        Returns the values for `end`, and the operations that have to run before the updates.
        """
        return self.fetch()

    def end(self, begun: Any) -> list[Any]:
        """Adds the changes of the copies to the variables; returns the operations.

        `begun` are the copies' values before the updates, which `begin` returned.
        """
        changes = [copy.read_value() - value for (_, copy), value in zip(self.pairs, begun)]
        variables = [variable for variable, _ in self.pairs]
        changes = in_one_message(changes, variables)
        added = [v.assign_add(change) for v, change in zip(variables, changes)]
        return [getattr(found, "op", found) for found in added]


def training_step(
    experiment: Any, global_step: Any, copies: Copies, period: int, stale: bool
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Returns a function of `period` batches that makes an update with each.

    The function returns the values of the last update, as a step of `step.training_step` does. If
    `stale`, `staleness` counts the updates of other workers since the variables were fetched.
    """

    def step(batches: Mapping[str, Any]) -> dict[str, Any]:
        seen = step_now(global_step) if stale else None
        parts = [{name: array[i] for name, array in batches.items()} for i in range(period)]
        # The loss is called once to make its variables, so that their copies are fetched as well.
        losses_of(experiment, parts[0])
        begun, done = copies.begin()
        values: dict[str, Any] = {}
        with copies.local():
            rate, chosen = rate_and_updates(experiment, global_step)
        for part in parts:
            with tf.control_dependencies(done):
                loss, scalars, pairs, optimizer = loss_and_gradients(
                    experiment,
                    part,
                    lambda losses: Updates(chosen, losses, copies.known()),
                    again=True,
                )
                with copies.local():
                    done = [optimizer.apply_gradients(pairs)]
            values = {"loss": loss, **scalars, "learning_rate": rate}
        with tf.control_dependencies(done):
            pushed = copies.end(begun)
        return {**values, **counted(global_step, period, tf.group(pushed), seen)}

    return step
