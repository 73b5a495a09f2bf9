"""Replicas that make each update together, on the parameter servers of a between-graph cluster."""

from __future__ import annotations

import collections
from typing import Any, Sequence

from compat._tensorflow import private, tf, tf1
from compat.runtime.graphs.chain import IN_STEP, MOST_UPDATES, Chain
from compat.runtime.graphs.nodes import dependencies, fetched
from compat.runtime.graphs.packing import distinct_rows, packed, unpacked

_LAST_TOKENS = 1000  # More than there are replicas, each of which needs one.


def adds_gradients(fetches: Any) -> bool:
    """Whether a call adds gradients to those of other replicas, for whose update it then waits."""
    return any("AccumulatorApplyGradient" in op.type for op in dependencies(fetched(fetches)))


def tokens(sync: Any, number: int) -> Any:
    """Returns the operation that puts tokens, each of which lets a replica make a gradient."""
    try:
        return sync.get_init_tokens_op(number)
    except ValueError:  # Too few, since more gradients are aggregated than there are replicas.
        return sync.get_init_tokens_op()


def last_tokens(sync: Any, is_chief: bool) -> Any:
    """Returns the operation that a replica runs at its end, so that no other waits for it.

    A replica returns its token, by which another one replaces its gradients. The chief makes the
    updates, so it puts a token for each replica that waits for the next one.
    """
    return tokens(sync, _LAST_TOKENS if is_chief else 1)


def queue_runner(sync: Any) -> Any:
    """Returns the chief's queue runner, which leaves the queue of tokens open when it stops.

    TensorFlow's closes the queue, also if the chief fails or is stopped. The other replicas would
    take this for the end of the data, and a chief that is started again would find it closed. The
    `close_op` of the queue runner closes it.
    """
    runner = sync.get_chief_queue_runner()
    graph = runner.queue.queue_ref.graph
    with graph.as_default(), private.extendable(graph), tf1.device(None):
        return tf1.train.QueueRunner(
            runner.queue,
            runner.enqueue_ops,
            cancel_op=tf1.no_op(),
            queue_closed_exception_types=(tf1.errors.OutOfRangeError, tf1.errors.CancelledError),
        )


class ReplicaHook(tf1.train.SessionRunHook):
    """Makes a replica in a monitored session end as one of a `Supervisor` does.

    Args:
      sync: the `SyncReplicasOptimizer`, whose own hook gets another queue runner.
      is_chief: whether the replica is the chief.
    """

    def __init__(self, sync: Any, is_chief: bool) -> None:
        self._last = [last_tokens(sync, is_chief)]
        if is_chief:
            runner = queue_runner(sync)
            sync.get_chief_queue_runner = lambda: runner
            self._last.append(runner.close_op)

    def end(self, session: Any) -> None:
        """Releases the other replicas."""
        session.last_operations = self._last
        session.leave()


class SyncReplicas:
    """Averages gradients before each update, as `tf.compat.v1.train.SyncReplicasOptimizer` does.

    Its methods have the same names and meaning, for `Supervisor(sync_optimizer=...)`. Its updates
    take less time: the gradients of all variables of a server are one message and one accumulator,
    the step of each replica is stored beside the global step, and one call of a session makes
    several updates, in a replica and in the chief's queue runner.

    As with TensorFlow's, an update has one gradient of each replica, unless a replica is so late
    for its token that another takes it, and makes two gradients of that update. This happened in 1
    of 60,000 updates, on two cores with twenty processes.

    Args:
      optimizer: the optimizer that makes the updates.
      replicas_to_aggregate: the number of gradients in an update.
      total_num_replicas: number of replicas; one may make several gradients of an update, or none.
      index: number of this replica.
    """

    def __init__(
        self, optimizer: Any, replicas_to_aggregate: int, total_num_replicas: int, index: int
    ) -> None:
        self._optimizer, self._index = optimizer, index
        self._aggregated, self._total = replicas_to_aggregate, total_num_replicas

    def apply_gradients(self, pairs: Any, global_step: Any, name: Any = None) -> Any:
        """Returns an operation that adds a replica's gradients, and waits for their update."""
        del name
        gradients, variables = [list(part) for part in zip(*pairs)]
        self._global_step = global_step
        with tf1.device(global_step.device):
            step = tf1.Variable(
                global_step.read_value,
                trainable=False,
                collections=[tf1.GraphKeys.LOCAL_VARIABLES],
                use_resource=True,
                name=f"replicas/step_{self._index}",  # The steps of all replicas are on one server.
            )
            self._tokens = tf1.FIFOQueue(-1, step.dtype, shapes=(), shared_name="sync_token_q")
            local_step = step.read_value()
        self.local_step_init_op = step.initializer
        self.ready_for_local_init_op = tf1.report_uninitialized_variables(tf1.global_variables())
        additions, averaged, initial = self._accumulated(gradients, variables, local_step)
        self.chief_init_op = tf.group(step.initializer, *initial)
        with tf1.device(global_step.device):
            updated = self._optimizer.apply_gradients(zip(averaged, variables), global_step)
            with tf.control_dependencies([updated]):
                added = self.get_init_tokens_op(max(self._aggregated, self._total))
            with tf.control_dependencies([added]):
                self._updated = tf.constant(0)
            with tf.control_dependencies(additions):
                token = self._tokens.dequeue()
            waited = step.assign(token, read_value=False)
        on_one_server = all(v.device == global_step.device for v in variables)
        if self._aggregated == self._total and on_one_server:
            # Each replica makes a gradient for each token, and reads of a variable wait, on its
            # server, for the previous token. So several updates in a call equal as many calls.
            tf1.add_to_collection(IN_STEP, token.op.name)
        return waited

    def _accumulated(
        self, gradients: Sequence[Any], variables: Sequence[Any], step: Any
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Returns operations that add gradients, the means, and the accumulators' initializers."""
        additions, initial = [], []
        averaged = list(gradients)
        places: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
        for i, (gradient, variable) in enumerate(zip(gradients, variables)):
            if isinstance(gradient, tf.IndexedSlices):
                each = distinct_rows(gradient)
                with tf1.device(variable.device):
                    rows = tf1.SparseConditionalAccumulator(
                        gradient.dtype, shape=(), shared_name=f"{variable.name}/gradient"
                    )
                    additions.append(rows.apply_indexed_slices_grad(each, step))
                    averaged[i] = rows.take_indexed_slices_grad(self._aggregated)
                    initial.append(rows.set_global_step(self._global_step))
            else:
                places[variable.device, gradient.dtype.name].append(i)
        for (device, dtype), there in sorted(places.items()):
            flat = packed([gradients[i] for i in there])
            shapes = [variables[i].shape for i in there]
            with tf1.device(device):
                mean = tf.raw_ops.ResourceConditionalAccumulator(
                    dtype=flat.dtype,
                    shape=[sum(shape.num_elements() for shape in shapes)],
                    shared_name=f"gradients/{device}/{dtype}",
                )
                additions.append(
                    tf.raw_ops.ResourceAccumulatorApplyGradient(
                        handle=mean, local_step=step, gradient=flat
                    )
                )
                taken = tf.raw_ops.ResourceAccumulatorTakeGradient(
                    handle=mean, num_required=self._aggregated, dtype=flat.dtype
                )
                parts = unpacked(taken, shapes)
                initial.append(
                    tf.raw_ops.ResourceAccumulatorSetGlobalStep(
                        handle=mean, new_global_step=self._global_step.read_value()
                    )
                )
            for i, part in zip(there, parts):
                averaged[i] = part
        return additions, averaged, initial

    def get_init_tokens_op(self, num_tokens: int) -> Any:
        """Returns the operation that puts tokens, each of which lets a replica continue."""
        if num_tokens < self._aggregated - self._total:
            raise ValueError(f"{num_tokens} tokens are too few for {self._aggregated} gradients")
        with tf1.device(self._global_step.device):
            return self._tokens.enqueue_many(
                [tf.fill([num_tokens], self._global_step.read_value())]
            )

    def get_chief_queue_runner(self) -> Any:
        """Returns the queue runner that makes the updates, and adds its operations to the graph."""
        graph = self._updated.graph
        updates = Chain(graph, [], [self._updated])
        update = self._updated
        if updates.takes([]):
            (update,) = updates.outputs(MOST_UPDATES)
        with graph.as_default(), private.extendable(graph), tf1.device(None):
            return tf1.train.QueueRunner(self._tokens, [update.op])
