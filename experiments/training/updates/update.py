"""Which optimizer updates which variables, by which loss, and how often."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from compat._tensorflow import tf, tf1
from compat.errors import UserError


class Update(NamedTuple):
    """One part of what `Experiment.optimizer` returns: an optimizer and the variables it updates.

    Attributes:
      optimizer: an optimizer of `tf.compat.v1.train`.
      variables: a list of variables, a model with `trainable_variables`, a function that returns
        whether it updates a given variable, or None for all variables that no other part has.
      every: the number of steps of which one makes an update; the gradients of the other steps are
        computed, but not used.
    """

    optimizer: Any
    variables: Any = None
    every: int = 1


def updates_of(found: Any) -> dict[str | None, list[Update]]:
    """Converts what `Experiment.optimizer` returned to lists of `Update` by the name of the loss.

    The name is None if there is only one loss.

    Raises:
      UserError: an optimizer is not one of TensorFlow 1.x, or `every` is not a positive int.
    """
    if isinstance(found, Mapping):
        parts = {name: [_update(part, f"for {name!r} ")] for name, part in found.items()}
        # Updates of all variables that are left come last, whatever the order of the losses.
        return dict(sorted(parts.items(), key=lambda item: item[1][0].variables is None))
    if isinstance(found, list):
        return {None: [_update(part) for part in found]}
    return {None: [_update(found)]}


def _update(found: Any, where: str = "") -> Update:
    update = Update(*found) if isinstance(found, tuple) else Update(found)
    optimizer = update.optimizer
    if not hasattr(optimizer, "compute_gradients"):
        kind = type(optimizer)
        package = kind.__module__.partition(".")[0]
        what = repr(optimizer) if package == "builtins" else f"{package}'s {kind.__name__}"
        raise UserError(
            f"optimizer() returned {where}{what}; return one of TensorFlow 1.x, such as "
            "tf1.train.AdamOptimizer(0.001)"
        )
    if not isinstance(update.every, int) or update.every < 1:
        raise UserError(
            f"an Update of optimizer() has every={update.every!r}; give a whole number of steps, 1 "
            "or more"
        )
    if update.every == 1:
        return update
    from experiments.training.updates import optimizers  # Here, since its classes need TensorFlow.

    return update._replace(optimizer=optimizers.Every(update.every, optimizer))


class Updates:
    """The updates of a step as one optimizer, which `SyncReplicasOptimizer` can wrap.

    Args:
      parts: what `updates_of` returned.
      losses: scalar tensors by name; a single loss has the name None.
      variables: the trainable variables.

    Raises:
      UserError: losses and parts differ in their names, or two parts have the same variable.
    """

    def __init__(
        self,
        parts: Mapping[str | None, Sequence[Update]],
        losses: Mapping[str | None, Any],
        variables: Sequence[Any],
    ) -> None:
        if set(parts) != set(losses):
            raise UserError(_other_names(parts, losses))
        self._losses = losses
        self._left = list(variables)
        self._chosen: list[tuple[str | None, Any, list[Any]]] = []
        for name, updates in parts.items():
            for update in updates:
                self._chosen.append((name, update.optimizer, self._take(update.variables)))

    def _take(self, wanted: Any) -> list[Any]:
        """Returns the variables of one `Update`, and removes them from those that are left."""
        if wanted is None:
            mine = self._left
        elif isinstance(wanted, (list, tuple)) or hasattr(wanted, "trainable_variables"):
            own = {id(_of_tensorflow(v)) for v in getattr(wanted, "trainable_variables", wanted)}
            mine = [variable for variable in self._left if id(variable) in own]
            for _, _, others in self._chosen:
                for variable in others:
                    if id(variable) in own:
                        raise UserError(
                            f"two parts of optimizer() have the variable {variable.name}; leave it "
                            "in one of them, whose loss may be a sum"
                        )
        else:
            mine = [variable for variable in self._left if wanted(variable)]
        taken = {id(variable) for variable in mine}
        self._left = [variable for variable in self._left if id(variable) not in taken]
        return mine

    @property
    def optimizer(self) -> Any:
        """An optimizer that makes all updates: the only one, or this object for several."""
        return self if len(self._chosen) > 1 else self._chosen[0][1]

    def gradients(self) -> dict[str | None, list[Any]]:
        """Returns pairs (gradient, variable) by loss, without variables that have no gradient.

        Raises:
          UserError: a loss depends on no variable, or a variable with a gradient is in no part.
        """
        found: dict[str | None, list[Any]] = {}
        for name, loss in self._losses.items():
            mine = [v for each, _, chosen in self._chosen if each == name for v in chosen]
            found[name] = _pairs([loss], mine)
            if not found[name]:
                whose = "the loss" if name is None else f"the loss {name!r}"
                raise UserError(
                    f"{whose} depends on no trainable variable{'' if name is None else ' of its'}, "
                    "so nothing can be trained; make it from variables of build() or get_variable"
                )
        missing = _pairs(list(self._losses.values()), self._left)
        if missing:
            raise UserError(
                f"optimizer() has no part for {', '.join(v.name for _, v in missing[:3])}; end it "
                "with (optimizer, None), for all that are left, or freeze them with trainable=False"
            )
        return found

    def apply_gradients(
        self, pairs: Sequence[Any], global_step: Any = None, name: Any = None
    ) -> Any:
        """Applies the gradients, and increments the global step after the last of them."""
        del name
        gradient_of = {id(variable): gradient for gradient, variable in pairs}
        parts = []
        for _, optimizer, chosen in self._chosen:
            mine = [(gradient_of[id(v)], v) for v in chosen if id(v) in gradient_of]
            parts += [(optimizer, mine)] if mine else []
        *others, (last, own) = parts
        with tf.control_dependencies([other.apply_gradients(theirs) for other, theirs in others]):
            return last.apply_gradients(own, global_step=global_step)

    def variables(self) -> list[Any]:
        """Returns the variables of all optimizers, such as their moments."""
        return [v for _, optimizer, _ in self._chosen for v in optimizer.variables()]

    def get_slot(self, variable: Any, name: str) -> Any:
        """Returns the slot `name` of a variable, of the first optimizer that has one; or None."""
        slots = [optimizer.get_slot(variable, name) for _, optimizer, _ in self._chosen]
        return next((slot for slot in slots if slot is not None), None)


def _of_tensorflow(variable: Any) -> Any:
    """Returns a variable of TensorFlow; a variable of Keras 3 contains one as its `value`."""
    value = getattr(variable, "value", None)
    return variable if value is None or callable(value) else value


def _pairs(losses: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
    gradients = tf1.gradients(losses, variables) if variables else []
    # The gradient is None for a variable that the loss does not depend on.
    return [pair for pair in zip(gradients, variables) if pair[0] is not None]


def _other_names(parts: Mapping[Any, Any], losses: Mapping[Any, Any]) -> str:
    if None in parts:
        names = ", ".join(map(repr, losses))
        return (
            f"loss() returned losses by name ({names}), and optimizer() none for each; return a "
            "dict of the same names from optimizer(), such as {" + repr(next(iter(losses))) + ": "
            "Update(tf1.train.AdamOptimizer(0.001), self.variables)}"
        )
    if None in losses:
        names = ", ".join(map(repr, parts))
        return (
            f"optimizer() returned optimizers by name ({names}), and loss() one loss; return a "
            "dict of the same names from loss()"
        )
    different = ", ".join(sorted(set(parts) ^ set(losses)))
    return f"{different} is a name of either loss() or optimizer(); use the same names in both"
