"""The interface of sessions and steps, which is the same on either runtime."""

from __future__ import annotations

import abc
import collections
import inspect
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from compat.errors import UserError
from compat.runtime.graphs.device_placement import Placed
from compat.runtime.outputs import structured

Values = Dict[str, Any]  # Scalars as floats, all else as arrays.


class Step(abc.ABC):
    """A function that a session runs; created by `compat.step`.

    Attributes:
      names: the names of its scalars, in the order of the vector in which a call returns them.
      others: the names of its other values.
      tensors: the tensor of each value, by name; see `step["name"]`.
      operations_by_name: the operations that its function returns.
      structures: the lists, tuples and dicts that its function returns, with names as leaves.
      summary: the merged `tf1.summary` operations of the step, a string tensor, for
        `SummarySaverHook(summary_op=...)`; None if it has none.
    """

    names: list[str]
    others: list[str]
    tensors: Mapping[str, Any]
    operations_by_name: Mapping[str, Any]
    structures: Mapping[str, Any]
    summary: Any

    def __getitem__(self, name: str) -> Any:
        """Returns the tensor or operation of a value, for the fetches of hooks and sessions.

        `session.run([step["train"], step["loss"]], feed_dict={"x": ...})` computes these values
        alone, as `select` does, and returns them in the structure of the fetches.

        Raises:
          UserError: the step has no value of this name.
        """
        parts = {**self.tensors, **self.operations_by_name}
        by_name = {**parts, **structured(parts, self.structures)}
        if name not in by_name:
            raise UserError(
                f"a step has no value {name!r}; return it from the step's function, beside "
                + ", ".join(sorted(self.tensors))
            )
        return by_name[name]

    @abc.abstractmethod
    def select(self, *names: str, inputs: Sequence[str] | None = None) -> Any:
        """Returns a step that computes these values alone, in the same graph as this one.

        So one function can build everything that a program computes, as in TensorFlow 1.x, and
        each call runs a part of it: `step.select("loss", "train")`, `step.select("accuracy")`.

        Args:
          names: the names of values and operations that the function returns.
          inputs: the parameters of the function that a call passes, in this order; by default all.

        Raises:
          UserError: the step has no such value or parameter, or a value needs another input.
        """

    @abc.abstractmethod
    def graph_def(self) -> bytes:
        """Returns the serialized graph of which the step is part, for TensorBoard."""

    @abc.abstractmethod
    def operations(self) -> list[Placed]:
        """Returns the operations of the step, and where they run."""

    def unpack(self, vector: Any, *others: Any) -> Values:
        """Returns a call's values by name: scalars are in `vector`, the other values in `others`.

        Scalars become floats, single strings bytes, all else arrays. The parts of a structure are
        separate values, which `structured` puts together.
        """
        values: Values = dict(zip(self.names, np.asarray(vector).tolist()))
        values.update(zip(self.others, map(_value, others)))
        return values

    def structured(self, values: Values) -> Values:
        """Returns the values of a call, in the structures that a session of TensorFlow returns."""
        if not self.structures:
            return dict(values)
        types = {n: tensor.dtype.as_numpy_dtype for n, tensor in self.tensors.items()}
        typed = {n: types[n](v) if isinstance(v, float) else v for n, v in values.items()}
        whole = structured(typed, self.structures)
        return {n: v if n in self.structures else values[n] for n, v in whole.items()}


def _value(tensor: Any) -> Any:
    value = tensor.numpy() if hasattr(tensor, "numpy") else tensor
    # An array of strings drops zeros at their ends, which a summary may have.
    return value if isinstance(value, bytes) else np.asarray(value)


class StepDefinition(NamedTuple):
    """The arguments of `compat.step`."""

    function: Callable[..., Mapping[str, Any]]
    signature: Sequence[Any]
    per_worker_data: Sequence[Any]
    on_coordinator: bool
    dataset: Callable[[int, int], Any] | None
    updates: int = 1

    def parameters(self) -> list[str]:
        """Returns the names of the function's parameters that each call passes."""
        every = [*inspect.signature(self.function).parameters]
        return every[-len(self.signature) :] if self.signature else []

    def positions(self, inputs: Sequence[str] | None) -> list[int]:
        """Returns the positions of the parameters `inputs` in the signature, or all for None."""
        known = self.parameters()
        for name in inputs or ():
            if name not in known:
                raise UserError(
                    f"a step has no parameter {name!r}; choose inputs among {', '.join(known)}"
                )
        return [*range(len(known))] if inputs is None else [known.index(name) for name in inputs]

    def check_arrays(self, stacked: Sequence[Any]) -> None:
        """Raises a `UserError` if arrays, with a row for each call, do not match the signature."""
        self._check_number(len(stacked))
        self._check_shapes(stacked, rows=True)

    def _check_number(self, number: int) -> None:
        if number != len(self.signature):
            raise UserError(
                f"a step was run on {number} arrays; its signature has "
                f"{len(self.signature)}, pass as many"
            )

    def _check_shapes(self, arrays: Sequence[Any], rows: bool = False) -> None:
        for i, (spec, array) in enumerate(zip(self.signature, arrays)):
            if type(spec).__name__ != "TensorSpec":
                continue  # A sparse value has no NumPy shape.
            shape = np.shape(array)[int(rows) :]
            if not spec.shape.is_compatible_with(shape):
                raise UserError(
                    f"a step was run with the shape {list(shape)} for {self.parameters()[i]!r}; "
                    f"its signature has {spec.shape.as_list()}, pass that"
                )

    def arrays(self, given: Sequence[Any], feed_dict: Mapping[Any, Any] | None) -> list[Any]:
        """Returns the arrays of a call in the signature's order.

        `given` has the arrays that are not in `feed_dict`, which is keyed by the names of
        `tf.TensorSpec`s.

        Raises:
          UserError: the signature lacks a name, there are too few or too many arrays, or an array
            has another shape.
        """
        names = [getattr(spec, "name", None) for spec in self.signature]
        fed = {fed_name(key): array for key, array in (feed_dict or {}).items()}
        unknown = next((name for name in fed if name not in names), None)
        if unknown is not None:
            known = ", ".join(repr(name) for name in names if name) or "no names"
            raise UserError(
                f"feed_dict has {unknown!r}, and the signature of the step has {known}; name what "
                "is fed as in tf.TensorSpec([None], name='x'), or pass the arrays behind the step"
            )
        self._check_number(len(fed) + len(given))
        rest = iter(given)
        arrays = [fed[name] if name in fed else next(rest) for name in names]
        self._check_shapes(arrays)
        return arrays


def fed_name(key: Any) -> str:
    """Returns the name of a key of a feed: a string, with ":0" or without, or a `tf.TensorSpec`."""
    return str(getattr(key, "name", key)).partition(":")[0]


def number_of_updates(stacked: Sequence[Any], count: int | None) -> int:
    """Returns how many updates `run_many` is asked for."""
    if not stacked:
        return 1 if count is None else count
    rows = sorted({len(array) for array in stacked})
    if len(rows) > 1 or count not in (None, rows[0]):
        count_given = "" if count is None else f", and count={count}"
        raise UserError(
            f"run_many was given arrays of {' and '.join(map(str, rows))} rows{count_given}; "
            "pass as many rows in each, and no count"
        )
    return rows[0]


class Interrupted(Exception):
    """A call was given up, because `Session.is_overdue` returned true."""


class Session(abc.ABC):
    """Runs steps; opened by `Supervisor.managed_session` or `prepare_or_wait_for_session`.

    Attributes:
      planned_step: the global step when all scheduled steps are done, as far as this process knows:
        on the legacy runtime the last step that it has read, on the modern runtime the number of
        steps that the coordinator has scheduled.
      on_updates: called with the index of a worker (None for this process or an unknown worker),
        the number of updates that it has made, and the values of the last.
      is_overdue: called while a call is being built, and every few seconds during the call; if it
        returns true, the call raises `Interrupted`. The updates of that call may still be made.
      last_step: the global step at which training ends; None if it is unknown. Larger calls are
        built only if the steps that are left make it worth it.
      on_build: called before a call of several steps is built, with the number of steps that it
        makes, and an estimate of the seconds that building it takes.
    """

    planned_step: int = 0
    last_step: int | None = None
    on_build: Callable[[int, float], object] | None = None
    on_updates: Callable[[int | None, int, Values], object] | None = None
    is_overdue: Callable[[], bool] | None = None

    @abc.abstractmethod
    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs one step on the arrays `args`, and returns its values by name.

        Arrays may also be given by the names in the step's signature: `feed_dict={"x": ...}`.

        The modern runtime keeps workers busy, so the values may be those of a call of this step
        that was scheduled a little earlier. `fetches` may also be anything that a
        `tf.compat.v1.Session` fetches, such as a variable or a list of variables.

        Raises:
          tf.errors.OutOfRangeError: the step's dataset has ended: this worker's on the legacy
            runtime, that of all workers on the modern one.
        """

    @abc.abstractmethod
    def run_many(self, step: Step, *stacked: Any, count: int | None = None) -> Values:
        """Runs several updates; returns the values of the last one, or {} for none.

        On the modern runtime one closure, which one worker runs, makes as many of these updates as
        saves time: the session measures the time to build a larger closure, and the time that it
        saves.

        Args:
          step: As for `run`.
          *stacked: Arrays with a row for each update.
          count: Number of updates of a step without arrays; by default 1.

        Raises:
          UserError: The arrays have different numbers of rows, or `count` is not their number.
          tf.errors.OutOfRangeError: As for `run`; no update was left to make.
        """

    @abc.abstractmethod
    def drain(self) -> Iterator[Values]:
        """Waits for all scheduled steps, and yields the values that no call has returned yet."""

    def settle(self) -> None:  # noqa: B027 - Only a coordinator makes updates ahead.
        """Waits for all scheduled steps and calls `on_updates`; `drain` still yields the values."""

    def check_overdue(self) -> None:
        """Raises `Interrupted` if the session `is_overdue`."""
        if self.is_overdue is not None and self.is_overdue():
            raise Interrupted

    def read(self, variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Returns the variables' values by name."""
        return {name: np.asarray(value) for name, value in self.run(dict(variables)).items()}

    @abc.abstractmethod
    def assign(self, variables: Mapping[str, Any], values: Mapping[str, np.ndarray]) -> None:
        """Gives the variables the values of the same names."""

    def restart(self, step: Step) -> None:  # noqa: B027 - A step may have no dataset.
        """Begins the dataset of a step anew."""

    def summarize(self) -> None:  # noqa: B027 - Only graphs collect summaries.
        """Writes the graph's summary, if it needs no input of a training call."""

    def any_worker(self, flag: bool) -> bool:
        """Returns whether any of the workers that train synchronously has the flag set.

        All of these workers must call this at the same steps. An asynchronous worker gets its own
        flag back.
        """
        return flag

    def leave(self) -> None:  # noqa: B027 - Asynchronous workers may.
        """Ends this worker's part after its last step; synchronous workers leave together."""

    @abc.abstractmethod
    def close(self) -> None:
        """Releases the resources of the session."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            collections.deque(self.drain(), maxlen=0)
        self.close()
