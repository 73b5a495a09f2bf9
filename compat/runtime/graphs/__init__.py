"""Runs graphs of TensorFlow 1.x whose variables are stored by TensorFlow 2, here or on servers."""
