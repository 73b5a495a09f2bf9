"""Wide & deep on Criteo's format by hand, as a tight program of TensorFlow 1.x writes it.

    PYTHONPATH=. python benchmarks/clicks/twin.py --data_dir=FOLDER --max_steps=120 --warm_up=20

Or under `python -m compat run`, or as a task of a cluster. A table and a weight for each category,
all of them with Adagrad; batches are parsed as a whole, hashed in the graph and prefetched; nothing
is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.clicks import clock
from benchmarks.clicks.clock import CATEGORIES, NUMBERS


def parse(lines: Any, buckets: int) -> Any:
    defaults = [[0]] + [[0.0]] * NUMBERS + [[""]] * CATEGORIES
    columns = tf.decode_csv(lines, defaults, field_delim="\t", use_quote_delim=False)
    numbers = tf.log1p(tf.nn.relu(tf.stack(columns[1 : 1 + NUMBERS], axis=1)))
    ids = [tf.string_to_hash_bucket_fast(c, buckets) for c in columns[1 + NUMBERS :]]
    return columns[0], numbers, tuple(ids)


def batches(here: Any, split: str) -> Any:
    files = clock.files(here.data_dir, split)
    if split == "train":
        files = files[here.task_index :: len(here.worker_hosts.split(","))]
    dataset = tf.data.TextLineDataset(files)
    if split == "train":
        dataset = dataset.shuffle(50 * here.batch_size, seed=1).repeat()
    dataset = dataset.batch(here.batch_size)
    dataset = dataset.map(lambda lines: parse(lines, here.buckets), num_parallel_calls=2)
    return dataset.prefetch(2)


def logits_of(here: Any, numbers: Any, ids: Any) -> Any:
    limit = here.width**-0.5
    deep, wide = [], []
    if here.alone:  # The gradient of the embeddings is computed all the same.
        deep, ids = [tf.get_variable("table", [here.batch_size, CATEGORIES * here.width])], ()
    for i, one in enumerate(ids):
        uniform = tf.random_uniform_initializer(-limit, limit, seed=i)
        shape = [here.buckets, here.width]
        table = tf.get_variable("table_" + str(i), shape, initializer=uniform)
        zeros = tf.zeros_initializer()
        weights = tf.get_variable("wide_" + str(i), [here.buckets, 1], initializer=zeros)
        deep.append(tf.nn.embedding_lookup(table, one))
        wide.append(tf.nn.embedding_lookup(weights, one))
    found = tf.concat([*deep, numbers], axis=1)
    units = [int(n) for n in here.hidden.split(",")] + [1]
    for i, size in enumerate(units):
        found = dense("layer_" + str(i), found, size)
        if i < len(units) - 1:
            found = tf.nn.relu(found)
    return tf.squeeze(sum(wide) + found + dense("numbers", numbers, 1), axis=1)


def dense(name: str, inputs: Any, size: int) -> Any:
    before = inputs.shape[1].value
    kernel = clock.kernel(before, size)
    return tf.nn.bias_add(
        tf.matmul(inputs, tf.get_variable(name + "/kernel", initializer=kernel)),
        tf.get_variable(name + "/bias", [size], initializer=tf.zeros_initializer()),
    )


def main() -> None:
    here = clock.flags()
    tf.logging.set_verbosity(tf.logging.ERROR)
    if not here.ps_hosts:
        train(here, None, "")
        return
    hosts = {"ps": here.ps_hosts.split(","), "worker": here.worker_hosts.split(",")}
    cluster = tf.train.ClusterSpec(hosts)
    server = tf.train.Server(cluster, job_name=here.job_name, task_index=here.task_index)
    if here.job_name == "ps":
        server.join()
    own = "/job:worker/task:" + str(here.task_index)
    with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
        train(here, own, server.target)


def train(here: Any, own: Any, target: str) -> None:
    step = tf.train.get_or_create_global_step()
    labels, numbers, ids = tf.data.make_one_shot_iterator(batches(here, "train")).get_next()
    if here.alone:
        labels = tf.zeros([here.batch_size], tf.int32)
        numbers = tf.get_variable("n", [here.batch_size, NUMBERS], trainable=False)
    logits = logits_of(here, numbers, ids)
    clicked = tf.cast(labels, tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
    loss = tf.reduce_mean(losses)
    optimizer = tf.train.AdagradOptimizer(here.learning_rate)
    update = optimizer.minimize(loss, global_step=step)
    tf.get_variable_scope().reuse_variables()
    tested = tf.data.make_one_shot_iterator(batches(here, "test")).get_next()
    scores = tf.zeros([]) if here.alone else logits_of(here, tested[1], tested[2])
    is_chief = here.task_index == 0
    supervisor = tf.train.Supervisor(
        is_chief=is_chief, logdir=None, summary_op=None, saver=None, recovery_wait_secs=1
    )
    config = tf.ConfigProto(device_filters=["/job:ps", own] if own else [])
    with supervisor.prepare_or_wait_for_session(
        target, config=config, start_standard_services=False
    ) as session:
        measured, number = clock.Clock(), 0
        while number < here.max_steps:
            _, number = session.run([update, step])
            if not measured.runs and number >= here.warm_up:
                measured.read(number)
        measured.read(number)
        found: list[Any] = []
        try:
            while is_chief and not here.alone:
                found.append(session.run([tested[0], scores]))
        except tf.errors.OutOfRangeError:
            pass
    reached = clock.auc(*(np.concatenate(part) for part in zip(*found))) if found else 0.5
    measured.print(reached)


if __name__ == "__main__":
    main()
