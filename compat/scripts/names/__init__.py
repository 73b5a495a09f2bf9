"""Builds the `tensorflow`, NumPy and other modules that a script imports."""
