"""The graph in which hooks fetch, on a runtime whose steps are in no graph of the program."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.liveness.watchdog import submit
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.session import Step

_GLOBAL_STEP = "global_step"


def eagerly(function: Callable[[], Any]) -> Any:
    """Returns what `function` returns; hooks may call from within their graph."""
    # Another thread is in no graph.
    return function() if tf.executing_eagerly() else submit(function).result()


class _UnknownName(UserError, KeyError):
    """A `KeyError` too, by which TensorFlow finds out that a graph has no global step."""

    def __str__(self) -> str:
        return str(self.args[0])  # That of a `KeyError` is in quotes.


def _of_operation(name: str) -> str:
    """Returns the name of an operation for one that people read, which may be any text.

    A graph tells apart those that become the same.
    """
    parts = [re.sub(r"[^\w.-]", "_", part, flags=re.ASCII) for part in name.split("/") if part]
    made = "/".join(parts) or "_"
    return made if re.match("[A-Za-z0-9.]", made) else "v" + made


class HookGraph(tf1.Graph):
    """A placeholder for each value of a step, for its summary, for each variable and the step.

    Hooks take them for what a graph would compute, and may add operations on them. When a hook
    fetches, they are fed with what the workers returned.
    """

    def __init__(self) -> None:
        super().__init__()
        self._needs: dict[Any, frozenset[Any]] = {}
        self._session: Any = None
        self.shown: Step | None = None  # The step whose graph is written for TensorBoard.
        self.step_op: Any = None  # The placeholder of the global step.
        self.variables: dict[Any, Any] = {}  # By their placeholders, which are operations.
        self._summaries: list[Any] = []
        # Which step, and which of its names, an operation here stands for, by its id.
        self.origins: dict[int, tuple[Any, str]] = {}

    def as_graph_element(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the tensor or operation of a name, or raises `UserError`."""
        try:
            return super().as_graph_element(obj, *args, **kwargs)
        except KeyError:
            known = sorted(
                op.name
                for op in self.get_operations()
                if op.type == "Placeholder" and op.name[:6] != "after/"
            )
            raise _UnknownName(
                f"a hook fetches {obj!r}, which no step returns; return it from the step's "
                f"function, beside {', '.join(known)}"
            ) from None

    def as_graph_def(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the graph of a step that trains, which is what the files are to show."""
        if self.shown is None:
            return super().as_graph_def(*args, **kwargs)
        return tf1.GraphDef.FromString(self.shown.graph_def())

    def add_step(self, specs: Mapping[str, Any], summarizes: bool) -> tuple[dict[str, Any], Any]:
        """Adds a placeholder for each value of a step, of its name, and one for its summary."""
        with self.as_default():
            values = {
                # That of `tf1.train.get_global_step()` has the name itself.
                name: self._placeholder(spec, f"after/{name}" if name == _GLOBAL_STEP else name)
                for name, spec in specs.items()
            }
            summary = None
            if summarizes:
                summary = self._placeholder(tf.TensorSpec([], tf.string), "summary")
                tf1.add_to_collection(tf1.GraphKeys.SUMMARIES, summary)
                self._summaries.append(summary.op)
        return values, summary

    def add_operations(self, names: Sequence[str]) -> dict[str, Any]:
        """Adds what stands for each operation of a step, which returns nothing."""
        with self.as_default():
            return {name: tf1.no_op(_of_operation(f"run_{name}")) for name in names}

    def add_variables(self, variables: Mapping[str, Any], global_step: Any) -> None:
        """Adds those of the variables that are new, and the global step, which may be None."""
        known = set(map(id, self.variables.values()))
        with self.as_default():
            if global_step is not None and self.step_op is None:
                tensor = self._placeholder(tf.TensorSpec([], global_step.dtype), _GLOBAL_STEP)
                tf1.add_to_collection(tf1.GraphKeys.GLOBAL_STEP, tensor)
                self.step_op = tensor.op
            for name, variable in variables.items():
                if variable is not global_step and id(variable) not in known:
                    self.variables[self._placeholder(variable, name).op] = variable

    def _placeholder(self, spec: Any, name: str) -> Any:
        made = tf1.placeholder(spec.dtype, spec.shape, _of_operation(name))
        made.to_proto = lambda export_scope=None: None  # For meta graphs, which want variables.
        return made

    def needs(self, fetches: Sequence[Any]) -> set[Any]:
        """Returns the placeholders that fetches depend on."""
        found: set[Any] = set()
        for fetch in fetches:
            op = getattr(fetch, "op", fetch)
            if op not in self._needs:
                before = dependencies([op])
                self._needs[op] = frozenset(o for o in before if o.type == "Placeholder")
            found |= self._needs[op]
        return found

    def evaluate(
        self, fetches: Sequence[Any], needed: set[Any], given: Mapping[Any, Any]
    ) -> list[Any]:
        """Returns the values of fetches, given those of the placeholders, or raises `UserError`."""
        if not fetches:
            return []
        empty = dict.fromkeys(self._summaries, b"")  # Of the steps that this call does not run.
        given = {op: value for op, value in {**empty, **given}.items() if op in needed}
        missing = sorted(op.name for op in needed - set(given))
        if missing:
            raise UserError(
                f"a hook fetches {missing[0]!r}, which the step of this call does not return; "
                "fetch values of the step that is run"
            )
        if self._session is None:
            self._session = tf1.Session(graph=self)
        feed = {op.outputs[0]: value for op, value in given.items()}
        values = self._session.run(list(fetches), feed)
        # What was fed comes back as an array, what is computed as a scalar.
        return [value[()] if isinstance(value, np.ndarray) else value for value in values]
