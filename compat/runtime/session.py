"""What a program holds while it trains: a session that runs steps, on either runtime."""

from __future__ import annotations

import abc
import types
from typing import Any, Dict, Iterator, Mapping

import numpy as np

from compat._tensorflow import tf
from compat.errors import UserError
from compat.runtime.device_placement import Placed

Values = Dict[str, float]


class Step(abc.ABC):
    """A function that a session runs; made by `compat.step`.

    Attributes:
      names: the names of its values, in the order in which they are packed.
    """

    names: list[str]

    @abc.abstractmethod
    def graph_def(self) -> bytes:
        """Returns the serialized graph of which the step is part, for TensorBoard."""

    @abc.abstractmethod
    def operations(self) -> list[Placed]:
        """Returns the operations of the step, and where they run."""

    def unpack(self, vector: Any) -> Values:
        """Turns the packed values, float64 `[len(names)]`, into floats by name."""
        return dict(zip(self.names, np.asarray(vector).tolist()))


def pack(outputs: Mapping[str, Any], global_step: Any | None) -> tuple[list[str], Any]:
    """Packs a step's outputs into one tensor, so that a call fetches once from the worker.

    Args:
      outputs: scalar tensors by name; operations among them are run first.
      global_step: the variable that counts updates; "global_step" is added where it is missing.

    Returns:
      The names, and a float64 tensor `[len(names)]`, exact for integers up to 2**53.

    Raises:
      UserError: `outputs` is not a dict of scalars.
    """
    if not isinstance(outputs, Mapping):
        raise UserError(
            f"a step returned {type(outputs).__name__}; return a dict of scalar tensors by name"
        )
    operations = [value for value in outputs.values() if isinstance(value, tf.Operation)]
    scalars = {
        name: value
        for name, value in outputs.items()
        if value is not None and not isinstance(value, tf.Operation)
    }
    for name, value in scalars.items():
        if value.shape.rank != 0:
            raise UserError(
                f"value {name!r} of a step has shape {value.shape}; reduce it to a scalar"
            )
    last = operations
    if global_step is not None and "global_step" not in scalars:
        # After the operations alone: to wait for the scalars as well would cost a message to the
        # parameter server and back. Only where there are none, a scalar may hide the update.
        with tf.control_dependencies(operations or list(scalars.values())):
            scalars["global_step"] = global_step.read_value()
        last = []  # It has waited for them.
    if not scalars:
        raise UserError("a step returned no value; return at least one scalar tensor by name")
    names = sorted(scalars)
    with tf.control_dependencies(last):
        return names, tf.stack([tf.cast(scalars[name], tf.float64) for name in names])


class Session(abc.ABC):
    """Runs steps; opened by `Supervisor.managed_session` or `prepare_or_wait_for_session`.

    Attributes:
      planned_step: the global step that is reached when everything that was handed out is done,
        as far as this process knows. On the legacy runtime that is the last one seen, on the
        modern runtime the coordinator knows what it gave to the workers.
    """

    planned_step: int = 0

    @abc.abstractmethod
    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs one step on the arrays `args`, and returns its values as floats by name.

        On the modern runtime workers are kept busy, so the values may be those of a call that
        was handed out a little earlier. A variable, or a list or dict of variables, gives their
        values. On the legacy runtime everything else that a `tf.compat.v1.Session` runs, too.
        """

    @abc.abstractmethod
    def run_many(self, step: Step, *stacked: Any) -> Values:
        """Runs one update for each leading index of the arrays; returns values of the last.

        On the modern runtime these updates are one closure, which one worker runs.
        """

    @abc.abstractmethod
    def drain(self) -> Iterator[Values]:
        """Waits for all that was handed out, and yields the values that were not seen yet."""

    @abc.abstractmethod
    def read(self, variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Returns the variables' values by name."""

    @abc.abstractmethod
    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        """Gives the variables the values of the same names."""

    def restart(self, step: Step) -> None:  # noqa: B027 - A step may have no dataset.
        """Begins the dataset of a step anew."""

    def summarize(self) -> None:  # noqa: B027 - Only graphs collect summaries.
        """Writes the graph's summary, if it needs no input of a training call."""

    def agree(self, flag: bool) -> bool:
        """Returns whether any of the workers that make each update together says so.

        They all have to ask at the same steps. Elsewhere it is what this process says.
        """
        return flag

    def leave(self) -> None:  # noqa: B027 - Asynchronous workers may.
        """Called after the last step, where workers that update together have to see to others."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees what the session holds."""

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()
