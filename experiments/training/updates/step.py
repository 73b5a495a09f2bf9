"""Builds the updates, evaluations and predictions of an experiment: from a batch to tensors."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

import compat
from compat import UserError, tf, tf1
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.graphs.packing import packed, unpacked
from compat.runtime.program_order import after, beside, in_program_order
from experiments.training.seeds import seeded_variables
from experiments.training.updates import broadcasts
from experiments.training.updates.accumulation import batch_size, in_parts, mean_gradients, weighted
from experiments.training.updates.numerics import check
from experiments.training.updates.update import Update, Updates, updates_of

# Names of values that a training step adds to the outputs of the experiment.
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
    """Returns a function of a batch that makes one update, and increments the global step.

    The function returns a dict with `loss` and the scalar outputs of the experiment, all computed
    before the update; `learning_rate`; and `train`, the operation that makes the update.

    Args:
      experiment: an instance of the experiment.
      global_step: the variable of the global step.
      wrap: returns the optimizer to use in place of the experiment's, such as a
        `SyncReplicasOptimizer` of it.
      stale: whether to return `staleness` as well: the number of updates that other workers made
        between this worker's reading of the variables and its update.
      remote: whether the variables are on parameter servers.
      counts: whether to return `examples_seen` as well: the number of examples that this worker has
        used since it was started.
    """

    def step(batch: Any) -> dict[str, Any]:
        seen = step_now(global_step) if stale else None
        chosen: list[Any] = []

        def updates_for(losses: Any) -> Updates:
            if not chosen:  # Called after loss(), whose variables optimizer() may name.
                chosen.extend(rate_and_updates(experiment, global_step))
            return Updates(chosen[1], losses, tf1.trainable_variables())

        loss, scalars, pairs, optimizer = loss_and_gradients(experiment, batch, updates_for)
        gradients, variables = [list(part) for part in zip(*pairs)]
        # The loss is averaged as well, so that all workers see a NaN at the same step.
        names = [name for name in sorted(scalars) if scalars[name].dtype == tf.float32]
        averaged = compat.average([*gradients, loss, *[scalars[name] for name in names]])
        gradients, loss = averaged[: len(gradients)], averaged[len(gradients)]
        scalars.update(zip(names, averaged[len(gradients) + 1 :]))
        if remote:
            gradients = in_one_message(gradients, variables)
        pairs = list(zip(gradients, variables))
        values: dict[str, Any] = {"loss": loss, **scalars, "learning_rate": chosen[0]}
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
            values["examples_seen"] = seen_here.read_value() + batch_size(batch)
            noted = seen_here.assign(values["examples_seen"])
            values["train"] = tf.group(values["train"], getattr(noted, "op", noted))
        return values

    return step


def step_now(global_step: Any) -> Any:
    """Returns the global step as a tensor on its variable's device, so it stays on that device."""
    with tf1.device(global_step.device):
        return global_step.read_value()


def counted(global_step: Any, updates: int, made: Any, seen: Any) -> dict[str, Any]:
    """Returns `train`, an operation that adds updates to the global step, and `staleness`.

    Args:
      global_step: the variable of the global step.
      updates: the number of updates.
      made: the operation that makes them; `train` waits for it.
      seen: the global step when the variables were read, a result of `step_now`. `staleness` is the
        number of updates of other workers since then; if `seen` is None, there is none.
    """
    before = [made] if seen is None else [made, seen]
    with tf1.device(global_step.device), tf.control_dependencies(before):
        train = global_step.assign_add(updates, read_value=False)
        if seen is None:
            return {"train": train}
        with tf.control_dependencies([train]):
            return {"train": train, "staleness": global_step.read_value() - seen - updates}


def loss_and_gradients(
    experiment: Any, batch: Any, updates_for: Callable[[Any], Updates], again: bool = False
) -> tuple[Any, dict[str, Any], list[Any], Any]:
    """Returns the loss of a batch, its scalar outputs, pairs (gradient, variable) and an optimizer.

    Several losses are added up, and each is one of the scalars. The gradients wait for the side
    effects of the experiment's functions, such as assignments. With --accumulate, each part of the
    batch waits for the gradients of the part before it.

    Args:
      experiment: an experiment, whose `loss` and `gradients` are called.
      batch: a batch of examples.
      updates_for: returns the updates for losses by name; it is called after `loss` has made its
        variables.
      again: whether `loss` has been called before for training, and now uses the same variables.
    """
    graph = tf1.get_default_graph()
    begin = len(graph.get_operations())
    shares: list[Any] = []
    parts: list[Losses] = []
    gradients: list[Any] = []
    for share, part in in_parts(batch, experiment.settings.accumulate):
        with tf.control_dependencies(_flat(gradients[-1]) if gradients else []):
            found = losses_of(experiment, part, again=again or bool(parts))
            updates = updates_for(found.losses)
            gradients.append(updates.gradients())
        shares.append(share)
        parts.append(found)
    found = _mean_of(parts, shares)
    effects, pairs = found.effects, []
    for own in mean_gradients(gradients, shares):
        with tf.control_dependencies(effects):  # Usually there are no effects.
            changed, more = in_program_order(functools.partial(_changed, experiment, own))
        pairs += changed
        effects = [*effects, *more]
    applied, variables = [list(part) for part in zip(*pairs)]
    scalars = {name: value for name, value in found.outputs.items() if value.shape.rank == 0}
    waits = beside(effects, applied)
    if experiment.settings.check_numerics:
        waits.append(check(graph.get_operations()[begin:]))
    pairs = list(zip(after(waits, applied), variables))
    return found.loss, scalars, pairs, updates.optimizer


def _flat(gradients: Mapping[Any, Any]) -> list[Any]:
    return [gradient for pairs in gradients.values() for gradient, _ in pairs]


def _mean_of(parts: Sequence[Losses], shares: Sequence[Any]) -> Losses:
    """Returns the losses of a batch, averaged over its parts; its outputs are only the scalars."""
    if len(parts) == 1:
        return parts[0]
    scalars = [n for n, v in parts[0].outputs.items() if v.shape.rank == 0 and v.dtype.is_floating]
    return Losses(
        parts[0].losses,
        weighted([part.loss for part in parts], shares),
        {name: weighted([part.outputs[name] for part in parts], shares) for name in scalars},
        [effect for part in parts for effect in part.effects],
    )


def _changed(experiment: Any, pairs: list[Any]) -> list[Any]:
    return list(experiment.gradients(pairs))


def rate_and_updates(experiment: Any, global_step: Any) -> tuple[Any, dict[Any, list[Update]]]:
    """Returns the learning rate as a tensor, and the parts of `Experiment.optimizer`."""

    def both() -> tuple[Any, Any]:
        rate = tf.convert_to_tensor(experiment.learning_rate(global_step))
        return rate, updates_of(experiment.optimizer(global_step))

    (rate, parts), effects = in_program_order(both)
    return after(beside(effects, rate), rate), parts


def evaluate(experiment: Any, batch: Any) -> dict[str, Any]:
    """Returns a dict with `loss`, all outputs, and `examples`, the size of the batch."""
    found = losses_of(experiment, batch, training=False)
    values = {"loss": found.loss, "examples": batch_size(batch), **found.outputs}
    return after(beside(found.effects, found.loss), values)


def predict(experiment: Any, batch: Any) -> dict[str, Any]:
    """Returns the predictions for a batch by name; see `Experiment.predict`.

    Side effects that depend on a part of the batch that the predictions do not need, such as a
    check of the labels, are left out.
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
    """Opens a scope in which `loss` makes its variables in the first call, and then reuses them.

    In later calls `get_variable` finds a variable by its name, and `tf.Variable` by its position in
    the order of creation.
    """
    # An evaluation uses the variables that training has made, if it has made any.
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


@dataclasses.dataclass(frozen=True)
class Losses:
    """The results of `Experiment.loss` for a batch."""

    losses: dict[str | None, Any]  # Scalars by name; a single loss has the name None.
    loss: Any  # The sum of the losses.
    outputs: dict[str, Any]  # The outputs by name; if there are several losses, they as well.
    effects: list[Any]  # Operations of side effects, which have to run with the loss.


def losses_of(experiment: Any, batch: Any, training: bool = True, again: bool = False) -> Losses:
    """Calls `Experiment.loss`, and raises a `UserError` if the result is not valid.

    `again` is whether `loss` has been called before for training, and now uses the same variables.
    """

    def call() -> Any:
        with _variables(experiment, training, again):
            return experiment.loss(batch, training)

    graph = tf1.get_default_graph()
    begin = len(graph.get_operations())
    found, effects = in_program_order(call)
    broadcasts.check(graph.get_operations()[begin:])
    first, outputs = found if isinstance(found, tuple) else (found, {})
    losses = dict(first) if isinstance(first, Mapping) and first else {None: first}
    for name, loss in losses.items():
        if not tf.is_tensor(loss) or loss.shape.rank != 0 or not loss.dtype.is_floating:
            what = f"shape {loss.shape} and {loss.dtype.name}" if tf.is_tensor(loss) else repr(loss)
            whose = "" if name is None else f" for {name!r}"
            raise UserError(
                f"loss() returned {what}{whose}; return a floating-point scalar, or (it, outputs)"
            )
    if not isinstance(outputs, Mapping):
        raise UserError(
            f"the outputs of loss() are {type(outputs).__name__}; return a dict of tensors by name"
        )
    named = {} if None in losses else losses
    taken = sorted((_RESERVED & {*outputs, *named}) | (set(outputs) & set(named)))
    if taken:
        raise UserError(f"output {taken[0]!r} of loss() has a name that is taken; choose another")
    tensors = {name: tf.convert_to_tensor(value) for name, value in {**outputs, **named}.items()}
    total = tf.add_n([*losses.values()]) if named else losses[None]
    return Losses(losses, total, tensors, effects)


def in_one_message(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
    """Sends gradients to their variables' devices, packed into one tensor for each device and type.

    Returns the gradients on these devices. Sparse gradients are not packed.
    """
    arrived = list(gradients)
    places: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for i, gradient in enumerate(gradients):
        # Sparse gradients are sent as they are, since they have few rows. `tf.is_tensor` is true
        # for them as well.
        if not isinstance(gradient, tf.IndexedSlices):
            places[variables[i].device, gradient.dtype.name].append(i)
    for (device, _), there in sorted(places.items()):
        flat = packed([gradients[i] for i in there])
        with tf.device(device):
            parts = unpacked(flat, [variables[i].shape for i in there])
        for i, part in zip(there, parts):
            arrived[i] = part
    return arrived
