"""`tf.contrib.rnn`: cells that no package has any more, and what they are made of."""
