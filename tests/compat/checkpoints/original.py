"""The example of 2016 as it was, in one process: plain TensorFlow 1.x, and nothing of ours.

It trains for some steps, saves, and prints the accuracy on the test set as one line of JSON. The
folders `golden/original-*` were made by TensorFlow 1.4.1 and 1.15.5, `v1` being the format of one
file:

    python tests/compat/checkpoints/original.py '{"logdir": "FOLDER", "steps": 30, "format": 2}'
"""

# TensorFlow 1.4 ends with Python 3.6, which does not know `annotations`.
import importlib
import json
import os
import sys

import numpy as np


def tensorflow():
    try:
        return importlib.import_module("tensorflow.compat.v1")
    except ImportError:
        return importlib.import_module("tensorflow")


def data(path):
    """Returns images float32 `[n, pixels]` and labels, one-hot, to train on and to test with."""
    if path is not None:
        with np.load(path) as arrays:
            return [arrays[name] for name in ("images", "labels", "test_images", "test_labels")]
    random = np.random.RandomState(0)
    images, labels = random.standard_normal([60, 8]), np.eye(4)[random.randint(0, 4, 60)]
    return [images[:40], labels[:40], images[40:], labels[40:]]


def main(logdir, steps, format, data_path=None):
    tf = tensorflow()
    if hasattr(tf, "disable_eager_execution"):
        tf.disable_eager_execution()
    images, labels, test_images, test_labels = data(data_path)
    pixels, classes = images.shape[1], labels.shape[1]
    units = 100 if pixels == 784 else 6

    global_step = tf.get_variable(
        "global_step", [], initializer=tf.constant_initializer(0), trainable=False
    )
    with tf.name_scope("input"):
        x = tf.placeholder(tf.float32, shape=[None, pixels], name="x-input")
        y_ = tf.placeholder(tf.float32, shape=[None, classes], name="y-input")
    tf.set_random_seed(1)
    with tf.name_scope("weights"):
        W1 = tf.Variable(tf.random_normal([pixels, units]))
        W2 = tf.Variable(tf.random_normal([units, classes]))
    with tf.name_scope("biases"):
        b1 = tf.Variable(tf.zeros([units]))
        b2 = tf.Variable(tf.zeros([classes]))
    with tf.name_scope("softmax"):
        a2 = tf.nn.sigmoid(tf.add(tf.matmul(x, W1), b1))
        y = tf.nn.softmax(tf.add(tf.matmul(a2, W2), b2))
    with tf.name_scope("cross_entropy"):
        cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    with tf.name_scope("train"):
        grad_op = tf.train.GradientDescentOptimizer(0.1)
        train_op = grad_op.minimize(cross_entropy, global_step=global_step)
    with tf.name_scope("Accuracy"):
        correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))

    saver = tf.train.Saver(write_version=format)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(steps):
            batch = np.arange(step * 20, (step + 1) * 20) % len(images)
            sess.run(train_op, feed_dict={x: images[batch], y_: labels[batch]})
        found = sess.run(accuracy, feed_dict={x: test_images, y_: test_labels})
        os.makedirs(logdir)
        saver.save(
            sess, os.path.join(logdir, "model.ckpt"), steps, write_meta_graph=data_path is not None
        )
    print(json.dumps(float(found)))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
