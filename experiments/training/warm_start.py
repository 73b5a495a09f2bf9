"""Sets the first values of a model's variables to those in the checkpoint of another model."""

from __future__ import annotations

from typing import Any, Callable

from compat.checkpoint.comparison import Comparison, compare, first, stored
from compat.checkpoint.files import reading
from compat.checkpoint.formats.stored import BETA_POWERS, GLOBAL_STEP, owner
from compat.errors import UserError
from compat.runtime.interface import Runtime
from compat.runtime.saver import Saver


def warm_start(prefix: str, runtime: Runtime) -> tuple[Callable[[Any], None], Comparison]:
    """Finds the variables of a model that a checkpoint has with the same name, shape and dtype.

    Counters of updates and the slots of an optimizer are not taken from the checkpoint.

    Args:
      prefix: prefix of the checkpoint, such as "runs/1/model.ckpt-500".
      runtime: the runtime that has the variables of the model.

    Returns:
      A function that sets the variables in a session, for `Supervisor(init_fn=...)`; and a
      comparison, which has the names of these variables and why the others are not set.

    Raises:
      UserError: the checkpoint cannot be read, or has none of the variables.
    """
    remedy = "name a log folder, or the prefix of a checkpoint such as runs/1/model.ckpt-500"
    with reading(prefix, remedy) as reader:
        entries = stored(reader)
    variables = _of_the_model(runtime)
    found = compare(entries, variables, runtime.slices())
    if not found.same:
        raise UserError(
            f"checkpoint {prefix} has no variable of this model: {first(found.different)}; name "
            "one of a model with the same names and shapes, or bring it over by python -m compat "
            "convert-checkpoint"
        )
    saver: Any = Saver([variables[name] for name in found.same])
    return lambda session: saver.restore(session, prefix), found


def _of_the_model(runtime: Runtime) -> dict[str, Any]:
    """Returns the variables by name, except the global step and those of an optimizer."""
    variables = runtime.variables()
    trained = {name for name, variable in variables.items() if variable.trainable}
    return {
        name: variable
        for name, variable in variables.items()
        if name in trained or not (owner(name, trained) or _is_counter(name))
    }


def _is_counter(name: str) -> bool:
    last = name.rpartition("/")[2]
    return name == GLOBAL_STEP or any(last.startswith(power) for power in BETA_POWERS)
