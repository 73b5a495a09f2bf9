"""What a script sees as `tensorflow`, NumPy and the libraries of its time."""
