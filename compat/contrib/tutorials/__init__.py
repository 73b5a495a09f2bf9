"""`tensorflow.examples.tutorials`, which TensorFlow 2.0 removed."""
