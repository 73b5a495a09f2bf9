"""The training of `experiments.mnist` by hand, after the tutorial on ParameterServerStrategy.

    python -m benchmarks.updates.twin_modern --job_name=worker --task_index=0 \
        --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 \
        --max_steps=5500 --warm_up=500 --dataset=mnist --packed=50

No lines, no summaries, no checkpoints, no validation, nothing fetched between the two moments that
are timed. As in ours, worker 0 is its own coordinator.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Callable

import tensorflow as tf

from benchmarks.updates import task
from benchmarks.updates.task import BATCH_SIZE, LEARNING_RATE, Clock, Task
from compat.cluster import ports


def connect(here: Task) -> Any:
    """Returns the strategy of the cluster, which this process coordinates."""
    with ports.reserve() as chief:
        cluster = tf.train.ClusterSpec({**here.cluster, "chief": [chief.address]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    return tf.distribute.ParameterServerStrategy(resolver)


def dataset_function(name: str, packed: int) -> Callable[[], Any]:
    """Returns a function that makes a data set of `packed` batches an element."""
    # Outside of the function, lest the examples become constants of its graph, in many copies.
    images, labels = (tf.constant(array) for array in task.training_set(name))

    def batches_of_an_epoch(_: Any) -> Any:
        order = tf.random.shuffle(tf.range(len(labels)))
        whole = len(labels) // BATCH_SIZE * BATCH_SIZE
        return tf.data.Dataset.from_tensor_slices(tf.reshape(order[:whole], [-1, BATCH_SIZE]))

    def dataset() -> Any:
        epochs = tf.data.Dataset.range(1).repeat()
        return (
            epochs.flat_map(batches_of_an_epoch)
            .batch(packed)
            .map(lambda batches: (tf.gather(images, batches), tf.gather(labels, batches)))
            .prefetch(1)
        )

    return dataset


def build(strategy: Any, packed: int) -> tuple[Any, Any]:
    """Returns a function that makes `packed` updates, and a variable with the last one's cost."""
    with strategy.scope():
        hidden_kernel, output_kernel = (tf.Variable(w) for w in task.initial_weights())
        hidden_bias = tf.Variable(tf.zeros([100]))
        output_bias = tf.Variable(tf.zeros([10]))
        last_cost = tf.Variable(math.nan)
        global_step = tf.Variable(0, dtype=tf.int64)
    weights = [hidden_kernel, hidden_bias, output_kernel, output_bias]

    def update(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            pixels = tf.cast(images, tf.float32) / 255.0
            hidden = tf.sigmoid(tf.matmul(pixels, hidden_kernel) + hidden_bias)
            logits = tf.matmul(hidden, output_kernel) + output_bias
            cost = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        for weight, gradient in zip(weights, tape.gradient(cost, weights)):
            weight.assign_sub(LEARNING_RATE * gradient)
        global_step.assign_add(1)
        return cost

    @tf.function(autograph=False)
    def updates(iterator: Any) -> None:
        images, labels = next(iterator)
        for i in range(packed):
            cost = strategy.run(update, args=(images[i], labels[i]))
        last_cost.assign(cost)

    return updates, last_cost


def train(here: Task) -> Clock:
    """Hands out all updates."""
    strategy = connect(here)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    updates, last_cost = build(strategy, here.packed)
    iterator = iter(coordinator.create_per_worker_dataset(dataset_function(here.data, here.packed)))
    clock = Clock()
    done = 0
    for goal in (here.warm_up, here.updates):
        for _ in range((goal - done) // here.packed):
            coordinator.schedule(updates, args=(iterator,))
        coordinator.join()
        done = goal
        clock.note(done, last_cost.numpy())
    return clock


def main() -> None:
    """Serves, or coordinates and serves."""
    here = task.from_command_line()
    tf.get_logger().setLevel("ERROR")
    server = tf.distribute.Server(here.cluster, job_name=here.job, task_index=here.index)
    if (here.job, here.index) != ("worker", 0):
        server.join()  # For ever; who started it, ends it.
    train(here).print()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
