"""One update, evaluation or prediction of an experiment: a batch in, tensors by name out."""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

import compat
from compat import UserError, tf, tf1
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.graphs.packing import packed, unpacked
from compat.runtime.program_order import after, beside, in_program_order
from experiments.training.seeds import seeded_variables

# Names of a training step's values that are not the experiment's own.
_RESERVED = {
    "examples",
    "examples_seen",
    "global_step",
    "learning_rate",
    "loss",
    "staleness",
    "train",
}


def training_step(
    experiment: Any,
    global_step: Any,
    *,
    wrap: Callable[[Any], Any] = lambda optimizer: optimizer,
    stale: bool = False,
    remote: bool = False,
    counts: bool = False,
) -> Callable[[Any], dict[str, Any]]:
    """Returns the function of a batch that makes one update, which the global step counts.

    It returns `loss` and the scalars among the experiment's outputs, of the batch before the
    update, `learning_rate` and, if `stale`, `staleness`: how many updates of other workers came
    between reading the variables and updating them. `wrap` makes of the optimizer the one that is
    used, such as `SyncReplicasOptimizer`; `remote` variables are on parameter servers. If it
    `counts`, `examples_seen` is how many examples this worker has used since it was started.
    """

    def step(batch: Any) -> dict[str, Any]:
        seen = step_now(global_step) if stale else None
        loss, scalars, pairs = loss_and_gradients(experiment, batch, tf1.trainable_variables)
        gradients, variables = [list(part) for part in zip(*pairs)]
        # The loss as well, so that all workers see at the same step that it is NaN or infinite.
        names = [name for name in sorted(scalars) if scalars[name].dtype == tf.float32]
        averaged = compat.average([*gradients, loss, *[scalars[name] for name in names]])
        gradients, loss = averaged[: len(gradients)], averaged[len(gradients)]
        scalars.update(zip(names, averaged[len(gradients) + 1 :]))
        if remote:
            gradients = in_one_message(gradients, variables)
        pairs = list(zip(gradients, variables))
        rate, found = rate_and_optimizer(experiment, global_step)
        values: dict[str, Any] = {"loss": loss, **scalars, "learning_rate": rate}
        optimizer = grouped(found, pairs)
        if seen is None:
            values["train"] = wrap(optimizer).apply_gradients(pairs, global_step=global_step)
        else:
            values.update(counted(global_step, 1, optimizer.apply_gradients(pairs), seen))
        with tf.control_dependencies([values["train"]]):
            more, effects = in_program_order(
                lambda: experiment.after_update(global_step, optimizer)
            )
        done = [values["train"], *([] if more is None else [more])]
        done += beside(effects, done)
        if len(done) > 1:
            values["train"] = tf.group(*done)
        if counts:
            seen_here = compat.worker_variable(np.int64(0), "examples_seen")
            values["examples_seen"] = seen_here.read_value() + _batch_size(batch)
            noted = seen_here.assign(values["examples_seen"])
            values["train"] = tf.group(values["train"], getattr(noted, "op", noted))
        return values

    return step


def step_now(global_step: Any) -> Any:
    """Returns the global step as a tensor where it is stored, so that no message has it."""
    with tf1.device(global_step.device):
        return global_step.read_value()


def counted(global_step: Any, updates: int, made: Any, seen: Any) -> dict[str, Any]:
    """Returns `train`, which counts updates once they are `made`, and `staleness`.

    That is how many updates of others came since the global step was `seen`, of `step_now`; it is
    left out without this.
    """
    before = [made] if seen is None else [made, seen]
    with tf1.device(global_step.device), tf.control_dependencies(before):
        train = global_step.assign_add(updates, read_value=False)
        if seen is None:
            return {"train": train}
        with tf.control_dependencies([train]):
            return {"train": train, "staleness": global_step.read_value() - seen - updates}


def loss_and_gradients(
    experiment: Any, batch: Any, variables_of: Callable[[], Sequence[Any]], again: bool = False
) -> tuple[Any, dict[str, Any], list[Any]]:
    """Returns the loss of a batch, the scalars of its outputs, and gradients with their variables.

    `variables_of` is called when the loss has made its own; `again`: it has in a call before.
    Gradients wait for what the experiment's functions do beside their values.
    """
    loss, outputs, effects = _loss_and_outputs(experiment, batch, training=True, again=again)
    scalars = {name: value for name, value in outputs.items() if value.shape.rank == 0}
    variables = variables_of()
    gradients = tf1.gradients(loss, variables)
    # A variable that is frozen has none, nor has one that the loss does not depend on.
    pairs = [pair for pair in zip(gradients, variables) if pair[0] is not None]
    if not pairs:
        raise UserError(
            "the loss depends on no trainable variable, so nothing can be trained; make it "
            "from variables of build() or get_variable"
        )
    with tf.control_dependencies(effects):  # Usually none.
        pairs, more = in_program_order(lambda: list(experiment.gradients(pairs)))
    applied, variables = [list(part) for part in zip(*pairs)]
    effects = beside([*effects, *more], applied)
    return loss, scalars, list(zip(after(effects, applied), variables))


def rate_and_optimizer(experiment: Any, global_step: Any) -> tuple[Any, Any]:
    """Returns the learning rate as a tensor, and what `Experiment.optimizer` returns."""

    def both() -> tuple[Any, Any]:
        rate = tf.convert_to_tensor(experiment.learning_rate(global_step))
        return rate, experiment.optimizer(global_step)

    (rate, optimizer), effects = in_program_order(both)
    return after(beside(effects, rate), rate), optimizer


def evaluate(experiment: Any, batch: Any) -> dict[str, Any]:
    """Returns the loss of a batch, all outputs, and `examples`, the number of its examples."""
    loss, outputs, effects = _loss_and_outputs(experiment, batch, training=False)
    values = {"loss": loss, "examples": _batch_size(batch), **outputs}
    return after(beside(effects, loss), values)


def predict(experiment: Any, batch: Any) -> dict[str, Any]:
    """Returns the predictions for a batch by name; see `Experiment.predict`.

    What needs more of the batch than they do, such as a check of the labels, is left out.
    """

    def call() -> Any:
        with _variables(experiment, training=False):
            return experiment.predict(batch)

    found, effects = in_program_order(call)
    if not isinstance(found, Mapping) or not found:
        what = "an empty dict" if isinstance(found, Mapping) else type(found).__name__
        raise UserError(f"predict() returned {what}; return a dict of tensors by name")
    values = {str(name): tf.convert_to_tensor(value) for name, value in found.items()}
    given = {tensor.op for tensor in tf.nest.flatten(batch, expand_composites=True)}
    left = given - set(dependencies([*values.values()]))
    return after([op for op in effects if not left & set(dependencies([op]))], values)


@contextlib.contextmanager
def _variables(experiment: Any, training: bool, again: bool = False) -> Iterator[None]:
    """Opens the scope in which `loss` makes variables the first time, and later finds the same.

    `get_variable` knows them by their names, those of `tf.Variable` by their order.
    """
    # An evaluation uses the variables that training has made, if there are any.
    reuse = None if training and not again else tf1.AUTO_REUSE
    made = vars(experiment).setdefault("_made_by_loss", [])
    known, named = iter([*made]), []

    def get(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        named.append(True)
        try:
            return getter(*args, **kwargs)
        finally:
            named.pop()

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        found = None if named else next(known, None)
        if found is not None:
            return found
        created = next_creator(**kwargs)
        made.extend([] if named else [created])
        return created

    with seeded_variables(experiment.settings.seed):
        scope = tf1.variable_scope(
            tf1.get_variable_scope(), reuse=reuse, custom_getter=get, auxiliary_name_scope=False
        )
        with scope, tf.variable_creator_scope(create):
            yield


def _loss_and_outputs(
    experiment: Any, batch: Any, training: bool, again: bool = False
) -> tuple[Any, dict[str, Any], list[Any]]:
    """Calls `Experiment.loss`, and checks what it returns; also what has to run beside it."""

    def call() -> Any:
        with _variables(experiment, training, again):
            return experiment.loss(batch, training)

    found, effects = in_program_order(call)
    loss, outputs = found if isinstance(found, tuple) else (found, {})
    if not tf.is_tensor(loss) or loss.shape.rank != 0 or not loss.dtype.is_floating:
        what = f"shape {loss.shape} and {loss.dtype.name}" if tf.is_tensor(loss) else repr(loss)
        raise UserError(f"loss() returned {what}; return a floating-point scalar, or (it, outputs)")
    if not isinstance(outputs, Mapping):
        raise UserError(
            f"the outputs of loss() are {type(outputs).__name__}; return a dict of tensors by name"
        )
    taken = sorted(_RESERVED & set(outputs))
    if taken:
        raise UserError(f"output {taken[0]!r} of loss() has a name that is taken; choose another")
    tensors = {name: tf.convert_to_tensor(value) for name, value in outputs.items()}
    return loss, tensors, effects


def in_one_message(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
    """Returns the gradients where their variables are, sent as one tensor to each device."""
    arrived = list(gradients)
    places: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for i, gradient in enumerate(gradients):
        # Sparse ones are sent as they are: their rows are few. For `tf.is_tensor` they are tensors.
        if not isinstance(gradient, tf.IndexedSlices):
            places[variables[i].device, gradient.dtype.name].append(i)
    for (device, _), there in sorted(places.items()):
        flat = packed([gradients[i] for i in there])
        with tf.device(device):
            parts = unpacked(flat, [variables[i].shape for i in there])
        for i, part in zip(there, parts):
            arrived[i] = part
    return arrived


def grouped(found: Any, pairs: list[Any]) -> Any:
    """Returns the optimizer, or those of several groups as one; see `Experiment.optimizer`."""
    groups = _groups(found, pairs)
    for optimizer, _ in groups:
        if not hasattr(optimizer, "compute_gradients"):
            name = f"{type(optimizer).__module__.partition('.')[0]}'s {type(optimizer).__name__}"
            raise UserError(
                f"optimizer() returned {name}; return one of TensorFlow 1.x, such as "
                "tf1.train.AdamOptimizer(0.001)"
            )
    return groups[0][0] if len(groups) == 1 else _Grouped(groups)


def _groups(found: Any, pairs: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Returns each optimizer with its gradients and variables; see `Experiment.optimizer`."""
    if not isinstance(found, (list, tuple)):
        return [(found, pairs)]
    groups, left = [], pairs
    for optimizer, chosen in found:
        if chosen is None:
            mine = left
        elif callable(chosen):
            mine = [pair for pair in left if chosen(pair[1])]
        else:
            wanted = {id(variable) for variable in chosen}
            mine = [pair for pair in left if id(pair[1]) in wanted]
        taken = {id(variable) for _, variable in mine}
        left = [pair for pair in left if id(pair[1]) not in taken]
        if mine:
            groups.append((optimizer, mine))
    if left:
        raise UserError(
            f"optimizer() has no group for {', '.join(v.name for _, v in left[:3])}; end its list "
            "with (optimizer, None), for all that are left, or freeze them with trainable=False"
        )
    return groups


class _Grouped:
    """Several optimizers as one, which `SyncReplicasOptimizer` can wrap."""

    def __init__(self, groups: Sequence[tuple[Any, list[Any]]]) -> None:
        self._groups = groups

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        """Applies the gradients, and counts the update when the last of them has been applied."""
        del name
        gradient_of = {id(variable): gradient for gradient, variable in pairs}
        *others, (last, own) = [
            (optimizer, [(gradient_of[id(variable)], variable) for _, variable in theirs])
            for optimizer, theirs in self._groups
        ]
        with tf.control_dependencies([other.apply_gradients(theirs) for other, theirs in others]):
            return last.apply_gradients(own, global_step=global_step)

    def variables(self) -> list[Any]:
        """Returns the variables of all optimizers, such as their moments."""
        return [variable for optimizer, _ in self._groups for variable in optimizer.variables()]


def _batch_size(batch: Any) -> Any:
    """Returns the number of examples: the first dimension of the first tensor that has one."""
    for first in tf.nest.flatten(batch, expand_composites=False):
        if isinstance(first, tf.SparseTensor):
            return first.dense_shape[0]
        if isinstance(first, tf.RaggedTensor):
            return first.nrows()
        if first.shape.rank != 0:
            return tf.shape(first, out_type=tf.int64)[0]
    return tf.constant(1, tf.int64)
