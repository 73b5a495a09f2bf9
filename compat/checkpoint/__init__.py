"""Checkpoints in TensorFlow's own format, the same on both runtimes."""
