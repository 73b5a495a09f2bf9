"""`tensorflow.examples.tutorials.mnist.input_data`: split, types and order of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once
SCRIPT = """
import sys
import numpy as np
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

folder = sys.argv[1]
data = input_data.read_data_sets(folder, one_hot=True, validation_size=1000)
print(type(data).__name__, data.train.num_examples, data.validation.num_examples,
      data.test.num_examples)
images, labels = data.train.next_batch(100)
print(images.dtype, images.shape, labels.dtype, labels.shape, images.max() <= 1.0)
none = input_data.read_data_sets(folder, validation_size=0).validation
assert none.images.shape == (0, 784), none.images.shape
raw = input_data.read_data_sets(folder, dtype=tf.uint8, reshape=False, validation_size=0).train
print(raw.images.dtype, raw.images.shape, raw.labels.dtype, raw.labels.shape)
fake = input_data.read_data_sets(folder, fake_data=True)
print(len(fake.train.next_batch(3, True)[0][0]))

np.random.seed(3)
data = input_data.read_data_sets(folder, validation_size=1000).train
first = data.labels[:4].tolist()
print(data.next_batch(4)[1].tolist() == first)
for _ in range(1249):
    data.next_batch(4)
print(data.epochs_completed)
rest = data.next_batch(7)[1]
print(len(rest), data.epochs_completed)
"""


def test_before_1_1_the_first_pass_is_in_order(run_script: RunScript, mnist_folder: Path) -> None:
    ran = run_script(SCRIPT, str(mnist_folder), options=("--era=0.x",))
    assert ran.code == 0, ran.err
    said = [line for line in ran.out.splitlines() if not line.startswith("Extracting")]
    assert said == [
        "Datasets 5000 1000 500",
        "float32 (100, 784) float64 (100, 10) True",
        "uint8 (6000, 28, 28, 1) uint8 (6000,)",
        "784",
        "True",
        "0",
        "7 1",
    ]
    extracted = [line for line in ran.out.splitlines() if line.startswith("Extracting")]
    assert extracted[0] == f"Extracting {mnist_folder}/train-images-idx3-ubyte.gz"


def test_since_1_1_it_is_shuffled(run_script: RunScript, mnist_folder: Path) -> None:
    ran = run_script(SCRIPT, str(mnist_folder), options=("--era=1.x",))
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-3:] == ["False", "0", "7 1"]


def test_where_the_folder_is_empty_the_option_helps(
    run_script: RunScript, mnist_folder: Path
) -> None:
    # Not the published data, which alone are taken from elsewhere: so it is said that they are not.
    ran = run_script(SCRIPT, "nowhere", options=(f"--data_dir={mnist_folder}",))
    assert ran.code == 2
    assert "is not the published MNIST" in ran.err
    assert ran.err.startswith("error: script.py:8: ")
    assert ran.err.count("\n") == 1


def test_files_are_read_for_gpus_that_are_not_there(run_script: RunScript, tmp_path: Path) -> None:
    """With soft placement the CPU reads, as it did until 1.15."""
    (tmp_path / "lines.txt").write_text("1\n2\n")
    ran = run_script(
        """
        import tensorflow as tf
        with tf.device("/gpu:1"):
            files = tf.train.string_input_producer(["lines.txt"], shuffle=False)
            _, line = tf.TextLineReader().read(files)
            batch = tf.train.batch([tf.string_to_number(line)], 2)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            threads = tf.train.start_queue_runners(session)
            print(session.run(batch))
        """,
        env={"CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert (ran.code, ran.out) == (0, "[1. 2.]\n"), ran.err
