"""One replica, or parameter server, of `benchmarks.together`: ours, or by hand as in 2016."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Callable

from benchmarks.trainings import cpu_seconds, tasks
from benchmarks.updates import task
from benchmarks.updates.task import BATCH_SIZE, LEARNING_RATE, Task

WARM_UP = 300  # Updates: a session makes one in a call at first, and optimizes what is new.
_CALL = 20  # Updates in a call of ours.


def measure(update: Callable[[int], None], updates: int, rounds: int, servers: bool) -> None:
    """Prints wall and processor time in ms an update, of each round; that of servers if given."""
    update(WARM_UP)
    server = tasks(os.getppid())["ps 0"].pid if servers else None

    def read() -> tuple[float, float, float]:
        served = cpu_seconds(server) if server else 0.0
        return time.perf_counter(), time.process_time(), served

    for _ in range(rounds):
        before = read()
        update(updates)
        after = read()
        print(json.dumps([1e3 * (b - a) / updates for a, b in zip(before, after)]), flush=True)


def ours(here: Task, flags: argparse.Namespace) -> None:
    """Trains by the step of `experiments.mnist --sync`."""
    import compat
    from compat.datasets import Batches
    from experiments.mnist import MNIST
    from experiments.training import program
    from experiments.training.inputs import data_of
    from experiments.training.recording.schedule import Schedule

    runtime = compat.select_runtime("legacy")
    server = compat.Server(here.cluster, here.job, here.index)
    if here.job == "ps":
        server.join()
        return
    settings = MNIST.Settings(
        batch_size=BATCH_SIZE,
        optimizer="sgd",
        learning_rate=LEARNING_RATE,
        initial="normal",
        dataset=here.data,
        strategy="ps",
        sync=True,
    )
    experiment = MNIST(settings)
    data = data_of(experiment.data())
    made = program.build(experiment, runtime, data, server, Schedule(550, 1, None, _CALL, 100))
    supervisor = compat.Supervisor(
        is_chief=server.is_chief, logdir=None, summary_op=None, sync_optimizer=made.sync_optimizer
    )
    batches = Batches(len(data.train["labels"]), BATCH_SIZE, 1, server.trainer_index)
    server.wait_for_peers(everybody=True)
    with supervisor.managed_session(server.target) as session:

        def update(updates: int) -> None:
            for _ in range(updates // _CALL):
                session.run_many(made.train, batches.next(_CALL))

        measure(update, flags.updates, flags.rounds, server.is_chief)


def by_hand(here: Task, flags: argparse.Namespace) -> None:
    """Trains by TensorFlow's `SyncReplicasOptimizer`, a call of the session for each update."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    server = tf.train.Server(here.cluster, job_name=here.job, task_index=here.index)
    if here.job == "ps":
        server.join()
    workers = len(here.cluster["worker"])
    setter = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{here.index}", cluster=tf.train.ClusterSpec(here.cluster)
    )
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.uint8, [BATCH_SIZE, 784])
        labels = tf.placeholder(tf.int32, [BATCH_SIZE])
        hidden, output = (tf.Variable(weights) for weights in task.initial_weights())
        biases = tf.Variable(tf.zeros([100])), tf.Variable(tf.zeros([10]))
        pixels = tf.cast(images, tf.float32) / 255.0
        logits = tf.matmul(tf.sigmoid(tf.matmul(pixels, hidden) + biases[0]), output) + biases[1]
        cost = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(LEARNING_RATE), workers, workers
        )
        train = optimizer.minimize(cost, global_step=step)
    all_images, all_labels = task.training_set(here.data)
    random = np.random.RandomState(here.index)
    hook: Any = optimizer.make_session_run_hook(here.index == 0, 0)
    with tf.train.MonitoredTrainingSession(
        server.target,
        here.index == 0,
        hooks=[hook],
        save_checkpoint_secs=None,
        save_summaries_steps=None,
        log_step_count_steps=None,
    ) as session:

        def update(updates: int) -> None:
            for _ in range(updates):
                batch = random.randint(len(all_labels), size=BATCH_SIZE)
                session.run([train, cost], {images: all_images[batch], labels: all_labels[batch]})

        measure(update, flags.updates, flags.rounds, here.index == 0)
        os._exit(0)  # The session would wait two minutes for its queue runner.


def main() -> None:
    """Serves or trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--by_hand", action="store_true")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--rounds", type=int)
    flags, rest = parser.parse_known_args()
    here = task.from_command_line(rest)
    (by_hand if flags.by_hand else ours)(here, flags)


if __name__ == "__main__":
    main()
