"""Rewrites a script of TensorFlow 0.8 to 1.15 as a program on `compat.v1`, by rules."""
