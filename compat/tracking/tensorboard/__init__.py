"""Event files, written without TensorFlow."""
