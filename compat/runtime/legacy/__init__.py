"""The legacy runtime: graphs and sessions of `tf.compat.v1`."""
