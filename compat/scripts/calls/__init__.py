"""Functions and classes of TensorFlow with the arguments and behavior of earlier releases."""
