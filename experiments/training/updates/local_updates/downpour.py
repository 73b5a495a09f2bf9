"""Downpour SGD: each worker makes several updates of its own between two messages to the servers.

Source: Dean et al., Large scale distributed deep networks, 2012: a worker fetches the parameters
before every n-th update, and what its updates have changed is added to them.
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
    """Makes a copy on the worker of each trainable variable; a model is given the copies.

    The variables themselves stay where they were made: on a parameter server, in checkpoints.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []  # Of a variable and its copy.
        self._is_local = False

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Returns a local copy in place of each trainable variable that is created inside."""
        with tf.variable_creator_scope(self._create):
            yield

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = next_creator(**kwargs)
        if self._is_local or not variable.trainable:
            return variable
        # It is always fetched before it is read.
        copy = self.make_local(variable, "copy")
        self.pairs.append((variable, copy))
        return copy

    def make_local(self, variable: Any, name: str) -> Any:
        """Makes a variable like another on the worker, with zeros."""
        zeros = np.zeros(variable.shape.as_list(), variable.dtype.base_dtype.as_numpy_dtype)
        self._is_local = True
        try:
            return compat.worker_variable(zeros, f"{variable.name.partition(':')[0]}/{name}")
        finally:
            self._is_local = False

    @contextlib.contextmanager
    def local(self) -> Iterator[None]:
        """Keeps variables made inside, such as an optimizer's moments, on the worker."""

        def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            kwargs.update(collections=[tf1.GraphKeys.LOCAL_VARIABLES], trainable=False)
            return next_creator(**kwargs)

        with tf.variable_creator_scope(create):
            yield

    def known(self) -> list[Any]:
        """Returns the copies that were made so far."""
        return [copy for _, copy in self.pairs]

    def fetch(self) -> tuple[list[Any], list[Any]]:
        """Gives the copies the variables' values; returns those, and what has to run for it."""
        values = [variable.read_value() for variable, _ in self.pairs]
        assigned = [copy.assign(value) for value, (_, copy) in zip(values, self.pairs)]
        return values, [getattr(found, "op", found) for found in assigned]

    def begin(self) -> tuple[Any, list[Any]]:
        """Prepares the copies for updates; returns what `end` needs, and what has to run before."""
        return self.fetch()

    def end(self, begun: Any) -> list[Any]:
        """Adds to the variables how the copies differ from what was fetched."""
        changes = [copy.read_value() - value for (_, copy), value in zip(self.pairs, begun)]
        variables = [variable for variable, _ in self.pairs]
        changes = in_one_message(changes, variables)
        added = [v.assign_add(change) for v, change in zip(variables, changes)]
        return [getattr(found, "op", found) for found in added]


def training_step(
    experiment: Any, global_step: Any, copies: Copies, period: int, stale: bool
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Returns the function of `period` batches, an update for each; see `step.training_step`.

    `staleness` counts the updates of other workers since the variables were fetched.
    """

    def step(batches: Mapping[str, Any]) -> dict[str, Any]:
        seen = step_now(global_step) if stale else None
        parts = [{name: array[i] for name, array in batches.items()} for i in range(period)]
        # Variables that the loss makes when it is called are fetched before the first update too.
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
