"""Packs the values of a step into few tensors, since each fetched tensor takes time."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from compat._tensorflow import tf, tf1
from compat.errors import UserError
from compat.runtime.program_order import recorded, warn_of_left_out


class Packed(NamedTuple):
    """The values of a step, packed into few tensors."""

    names: list[str]  # The names of the scalars.
    vector: Any  # The scalars, float64 `[len(names)]`, exact for integers up to 2**53.
    others: dict[str, Any]  # The other tensors by name.
    tensors: dict[str, Any]  # All tensors by name, as the step's function returned them.
    summary: Any  # The merged summary operations, a string; None if there are none.
    outputs: Mapping[str, Any]  # The function's return values; parts of structures by name.
    structures: Mapping[str, Any]  # The returned lists, tuples and dicts, with names as leaves.

    def operations(self) -> dict[str, Any]:
        """Returns the operations among the outputs by name."""
        return {n: value for n, value in self.outputs.items() if isinstance(value, tf.Operation)}

    def flat(self) -> list[Any]:
        """Returns the tensors to fetch: the vector, the others, the summary if there is one."""
        summary = [] if self.summary is None else [self.summary]
        return [self.vector, *self.others.values(), *summary]

    def select(
        self, names: Sequence[str], has_all_inputs: bool, global_step: Callable[[], Any]
    ) -> Packed:
        """Packs some of the outputs anew, in the default graph.

        Only a step that runs all operations keeps the summary, which waits for all of them.
        """
        known = structured(self.outputs, self.structures)
        for name in names:
            if name not in {**self.outputs, **known}:
                raise UserError(
                    f"a step has no value {name!r} to select; return it from the step's function, "
                    f"beside {', '.join(map(str, known))}"
                )
        chosen = {n: known[n] if n in known else self.outputs[n] for n in names}
        selected = pack(lambda: chosen, global_step)
        left_out = {*self.operations().values()} - {*selected.operations().values()}
        is_whole = has_all_inputs and not left_out
        return selected._replace(summary=self.summary if is_whole else None)


def structured(values: Mapping[str, Any], structures: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values in lists, tuples and dicts, as a session of TensorFlow returns them.

    Args:
      values: values by name; a missing one, such as that of an operation, becomes None.
      structures: by name, lists, tuples and dicts with names of values as leaves.
    """
    parts = {name for each in structures.values() for name in tf.nest.flatten(each)}
    whole = {name: value for name, value in values.items() if name not in parts}
    whole.update((n, tf.nest.map_structure(values.get, each)) for n, each in structures.items())
    return whole


def _flattened(outputs: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the outputs with each part of a structure as an entry, and the structures."""
    flat: dict[str, Any] = {}
    structures: dict[str, Any] = {}
    for name, value in outputs.items():
        if tf.nest.is_nested(value):
            parts = {f"{name}/{i}": part for i, part in enumerate(tf.nest.flatten(value))}
            structures[str(name)] = tf.nest.pack_sequence_as(value, [*parts])
        else:
            parts = {str(name): value}
        for part in set(parts) & set(flat):
            raise UserError(f"a step returned two values {part!r}; give each a name of its own")
        flat.update(parts)
    return flat, structures


def check_inputs(names: Sequence[str], missing: Sequence[str]) -> None:
    """Raises a `UserError` if selected values need inputs that are not selected."""
    if missing:
        raise UserError(
            f"the values {', '.join(names)} of a step need the input {missing[0]!r}; "
            "select it as well"
        )


def pack(function: Callable[[], Mapping[str, Any]], global_step: Callable[[], Any]) -> Packed:
    """Packs the scalars of a step's function into one tensor, so that a call fetches once.

    Operations among the outputs run first. If the outputs lack "global_step", the value of the
    variable that `global_step` returns is added. A warning names assignments that never run.
    """
    key = tf1.GraphKeys.SUMMARIES
    earlier = len(tf1.get_collection(key))
    with recorded() as recording, warnings.catch_warnings():
        # TensorFlow warns that its 2.x writers do not record operations of `tf1.summary`.
        warnings.filterwarnings("ignore", "Cannot activate TF2 compatibility")
        outputs, step = function(), global_step()
    summaries = tf1.get_collection(key)[earlier:]
    if not isinstance(outputs, Mapping):
        raise UserError(
            f"a step returned {type(outputs).__name__}; return a dict of tensors by name"
        )
    outputs, structures = _flattened(outputs)
    operations = [value for value in outputs.values() if isinstance(value, tf.Operation)]
    with tf.control_dependencies(operations):  # Variables are read when these have run.
        tensors = {
            name: _tensor(name, value)
            for name, value in outputs.items()
            if value is not None and not isinstance(value, tf.Operation)
        }
    scalars = {n: t for n, t in tensors.items() if t.shape.rank == 0 and t.dtype != tf.string}
    last = operations
    if step is not None and "global_step" not in tensors:
        # The read waits for the operations alone: waiting for the scalars as well would take a
        # message to the parameter server and back. Without operations, it waits for the scalars,
        # since one of them may contain the update.
        with tf.control_dependencies(operations or list(tensors.values())):
            scalars["global_step"] = tensors["global_step"] = step.read_value()
        last = []  # The read has waited for the operations.
    if not scalars and not tensors and not operations:
        raise UserError("a step returned no value; return at least one tensor by name")
    names = sorted(scalars)
    with tf.control_dependencies(last):
        columns = [tf.cast(scalars[name], tf.float64) for name in names]
        vector = tf.stack(columns) if columns else tf.zeros([0], tf.float64)
        others = {n: tf.identity(tensors[n]) for n in sorted(set(tensors) - set(scalars))}
        summary = tf1.summary.merge(summaries) if summaries else None
    packed = Packed(names, vector, others, tensors, summary, outputs, structures)
    warn_of_left_out(recording, packed.flat())
    return packed


def _tensor(name: Any, value: Any) -> Any:
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"value {name!r} of a step is {type(value).__name__}; return a tensor, a number or an "
            "operation"
        ) from error
