"""`tf.contrib.training`: hyperparameters, and batches of examples from queues."""
