"""TensorFlow 1.x for a program that `python -m compat migrate` has written.

    import compat.v1 as tf
    from compat.v1.examples.tutorials.mnist import input_data

    cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2223"]})
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.contrib.layers.fully_connected(x, 10)

It is `tensorflow.compat.v1` with the names that TensorFlow has removed and the calls that it has
changed, as scripts see it under `python -m compat run`. The modules of the package provide the
other parts of old programs. TensorFlow is imported on the first use.
"""

from compat.v1._view import __dir__, __getattr__  # noqa: F401 - Python asks for them.
