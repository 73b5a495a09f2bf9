"""The training of `experiments.mnist` by hand, after the example of 2016: graph and session.

    python -m benchmarks.updates.twin_legacy --job_name=worker --task_index=0 \
        --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 \
        --max_steps=5500 --warm_up=500 --dataset=mnist

No lines, no summaries, no checkpoints, no validation; the loop is one feed and one `session.run`,
which makes `--packed` updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks.updates import task
from benchmarks.updates.task import BATCH_SIZE, LEARNING_RATE, Clock, Task


def build(here: Task) -> tuple[Any, Any, Any, Any, Any]:
    """Returns placeholders of images and labels, the training operation, cost and global step."""
    setter = None
    if not here.alone:
        setter = tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{here.index}",
            cluster=tf.train.ClusterSpec(here.cluster),
        )
    with tf.device(setter):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.uint8, [here.packed, BATCH_SIZE, 784])
        labels = tf.placeholder(tf.int32, [here.packed, BATCH_SIZE])
        hidden_kernel, output_kernel = (tf.Variable(w) for w in task.initial_weights())
        hidden_bias = tf.Variable(tf.zeros([100]))
        output_bias = tf.Variable(tf.zeros([10]))
        variables = [hidden_kernel, hidden_bias, output_kernel, output_bias]
        optimizer = tf.train.GradientDescentOptimizer(LEARNING_RATE)
        before: list[Any] = []
        for i in range(here.packed):
            with tf.control_dependencies(before):
                weights = [variable.read_value() for variable in variables]
            pixels = tf.cast(images[i], tf.float32) / 255.0
            hidden = tf.sigmoid(tf.matmul(pixels, weights[0]) + weights[1])
            logits = tf.matmul(hidden, weights[2]) + weights[3]
            cost = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[i], logits=logits)
            )
            gradients = zip(tf.gradients(cost, weights), variables)
            before = [optimizer.apply_gradients(gradients, global_step=global_step)]
    return images, labels, before[0], cost, global_step


def train(here: Task, target: str) -> Clock:
    """Trains as one worker, until all workers together have made the updates."""
    all_images, all_labels = task.training_set(here.data)
    images, labels, train_op, cost, global_step = build(here)
    supervisor = tf.train.Supervisor(
        is_chief=here.alone or here.index == 0,
        init_op=tf.global_variables_initializer(),
        global_step=global_step,
        logdir=None,
        saver=None,
        summary_op=None,
        recovery_wait_secs=1,
    )
    filters = [] if here.alone else ["/job:ps", f"/job:worker/task:{here.index}"]
    config = tf.ConfigProto(device_filters=filters)
    random = np.random.RandomState(here.index)
    clock = Clock()
    size = here.packed * BATCH_SIZE
    # Alone, each makes its part of the updates on variables of its own.
    copies = len(here.cluster["worker"]) if here.alone else 1
    with supervisor.prepare_or_wait_for_session(
        target, config=config, start_standard_services=False
    ) as session:
        fetches = [train_op, cost, global_step]
        while True:
            order = random.permutation(len(all_labels))
            for start in range(0, len(order) - size + 1, size):
                batch = order[start : start + size].reshape(here.packed, BATCH_SIZE)
                feed = {images: all_images[batch], labels: all_labels[batch]}
                _, value, step = session.run(fetches, feed)
                made = int(step) * copies
                if made >= here.warm_up and not clock.steps:
                    clock.note(made, value)
                if made >= here.updates:
                    clock.note(made, value)
                    return clock


def main() -> None:
    """Serves or trains."""
    here = task.from_command_line()
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    if here.alone:
        train(here, "").print()
        return
    server = tf.train.Server(here.cluster, job_name=here.job, task_index=here.index)
    if here.job == "ps":
        server.join()  # For ever, as in 2016; who started it, ends it.
    train(here, server.target).print()


if __name__ == "__main__":
    main()
