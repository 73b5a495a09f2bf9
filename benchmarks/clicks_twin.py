"""Wide & deep on Criteo's format by hand, as a tight program of TensorFlow 1.x writes it.

    python benchmarks/clicks_twin.py --data_dir=FOLDER --max_steps=120 --warm_up=20

Or under `python -m compat run`. A table and a weight for each category, all of them with Adagrad;
batches are parsed as a whole, hashed in the graph and prefetched; nothing is written.
"""

from __future__ import annotations

import argparse
import glob
import json
import time
from typing import Any

import numpy as np
import tensorflow as tf

NUMBERS, CATEGORIES = 13, 26


def flags() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    for name in ("max_steps", "warm_up", "batch_size", "buckets", "width"):
        parser.add_argument("--" + name, type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="layers without tables and input")
    parser.add_argument("--hidden", default="1024,512,256")
    parser.add_argument("--learning_rate", type=float, default=0.05)
    return parser.parse_args()


def parse(lines: Any, buckets: int) -> Any:
    defaults = [[0]] + [[0.0]] * NUMBERS + [[""]] * CATEGORIES
    columns = tf.decode_csv(lines, defaults, field_delim="\t", use_quote_delim=False)
    numbers = tf.log1p(tf.nn.relu(tf.stack(columns[1 : 1 + NUMBERS], axis=1)))
    ids = [tf.string_to_hash_bucket_fast(c, buckets) for c in columns[1 + NUMBERS :]]
    return columns[0], numbers, tuple(ids)


def batches(here: Any, split: str) -> Any:
    files = sorted(glob.glob(here.data_dir + "/" + split + "*"))
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
    random = np.random.RandomState(1)
    kernel = (random.standard_normal([before, size]) * (2.0 / before) ** 0.5).astype(np.float32)
    return tf.nn.bias_add(
        tf.matmul(inputs, tf.get_variable(name + "/kernel", initializer=kernel)),
        tf.get_variable(name + "/bias", [size], initializer=tf.zeros_initializer()),
    )


def auc(labels: Any, scores: Any) -> float:
    order = np.argsort(scores, kind="mergesort")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    ones = labels.sum()
    return (ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones))


def main() -> None:
    here = flags()
    tf.logging.set_verbosity(tf.logging.ERROR)
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
    train = optimizer.minimize(loss, global_step=step)
    tf.get_variable_scope().reuse_variables()
    tested = tf.data.make_one_shot_iterator(batches(here, "test")).get_next()
    scores = tf.zeros([]) if here.alone else logits_of(here, tested[1], tested[2])
    supervisor = tf.train.Supervisor(logdir=None, summary_op=None, saver=None)
    with supervisor.prepare_or_wait_for_session(start_standard_services=False) as session:
        for number in range(here.max_steps):
            if number == here.warm_up:
                began, cpu = time.time(), time.process_time()
            session.run(train)
        wall, cpu = time.time() - began, time.process_time() - cpu
        found: list[Any] = []
        try:
            while not here.alone:
                found.append(session.run([tested[0], scores]))
        except tf.errors.OutOfRangeError:
            pass
    steps = here.max_steps - here.warm_up
    reached = auc(*(np.concatenate(part) for part in zip(*found))) if found else 0.5
    print(json.dumps({"wall": wall / steps, "cpu": cpu / steps, "auc": reached}))


if __name__ == "__main__":
    main()
