"""`tf.contrib.rnn`: cells that no maintained package provides, and their parts."""
