"""`tf.contrib.data`, `tf.contrib.lookup` and features of sequences."""
