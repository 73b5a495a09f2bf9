"""Files of variables: of `tf.train.Saver`, of `tf.train.Checkpoint`, and of Keras 3."""
