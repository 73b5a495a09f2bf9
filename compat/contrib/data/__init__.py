"""`tf.contrib.data`, `tf.contrib.lookup` and what reads features of sequences."""
